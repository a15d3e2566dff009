# One target per layer, and the rule of who may see whom.
#
# sx_layer(NAME DIR [USES LAYER...] [LIBRARIES LIB...])
#   Makes the object library sx_NAME from src/DIR/*.c. Its own headers and those of the layers in USES are
#   found as "base/status.h", "backend/cpu/x.h"; those of no other layer are, since each layer's headers are
#   reached through a folder of its own in the build tree. LIBRARIES are libraries of others that only this
#   layer's sources see. A layer without sources yet is a target with headers only.
#   The test layer.NAME links the layer with nothing but what it may use, so a forbidden call fails too.
function(sx_layer name dir)
    cmake_parse_arguments(arg "" "" "USES;LIBRARIES" ${ARGN})
    set(target sx_${name})
    set(inc ${CMAKE_BINARY_DIR}/inc/${name})
    cmake_path(GET dir PARENT_PATH parent)
    file(MAKE_DIRECTORY ${inc}/${parent})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${dir} ${inc}/${dir} SYMBOLIC)

    set(uses ${arg_USES})
    list(TRANSFORM uses PREPEND sx_)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${dir}/*.c)
    if(sources)
        add_library(${target} OBJECT ${sources})
        target_include_directories(${target} PUBLIC ${inc})
        target_link_libraries(${target} PUBLIC ${uses} PRIVATE ${arg_LIBRARIES} Threads::Threads)
        target_compile_options(${target} PRIVATE
            -ffile-prefix-map=${CMAKE_BINARY_DIR}/inc/${name}/=src/ -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
        set_property(GLOBAL APPEND PROPERTY SX_LAYERS ${target})
        set_property(GLOBAL APPEND PROPERTY SX_LIBRARIES ${arg_LIBRARIES})
    else()
        message(STATUS "src/${dir} has no sources yet")
        add_library(${target} INTERFACE)
        target_include_directories(${target} INTERFACE ${inc})
        target_link_libraries(${target} INTERFACE ${uses})
    endif()

    # Everything that the layer may link with, itself included.
    set(closure ${target})
    set(libraries ${arg_LIBRARIES})
    foreach(use ${arg_USES})
        get_property(c GLOBAL PROPERTY SX_CLOSURE_${use})
        get_property(l GLOBAL PROPERTY SX_CLOSURE_LIBRARIES_${use})
        list(APPEND closure ${c})
        list(APPEND libraries ${l})
    endforeach()
    list(REMOVE_DUPLICATES closure)
    list(REMOVE_DUPLICATES libraries)
    set_property(GLOBAL PROPERTY SX_CLOSURE_${name} ${closure})
    set_property(GLOBAL PROPERTY SX_CLOSURE_LIBRARIES_${name} ${libraries})

    if(sources AND BUILD_TESTING AND CMAKE_BUILD_TYPE MATCHES "^(Debug|Release)$")
        set(objects)
        foreach(member ${closure})
            get_target_property(type ${member} TYPE)
            if(type STREQUAL OBJECT_LIBRARY)
                list(APPEND objects $<TARGET_OBJECTS:${member}>)
            endif()
        endforeach()
        set(flags)
        foreach(library ${libraries})
            get_target_property(imported ${library} TYPE)
            if(imported STREQUAL SHARED_LIBRARY)
                list(APPEND flags $<TARGET_FILE:${library}>)
            else()
                list(APPEND flags $<TARGET_PROPERTY:${library},INTERFACE_LINK_LIBRARIES>)
            endif()
        endforeach()
        add_test(NAME layer.${name} COMMAND_EXPAND_LISTS
            COMMAND ${CMAKE_C_COMPILER} -shared -Wl,--no-undefined -o ${CMAKE_BINARY_DIR}/inc/${name}.so
                    ${objects} ${flags} -lm -pthread)
        set_tests_properties(layer.${name} PROPERTIES TIMEOUT 60 LABELS layer)
    endif()
endfunction()

# sx_headers(NAME DIR): a folder of headers that is no object library of its own.
function(sx_headers name dir)
    cmake_path(GET dir PARENT_PATH parent)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/inc/${name}/${parent})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${dir} ${CMAKE_BINARY_DIR}/inc/${name}/${dir} SYMBOLIC)
endfunction()
