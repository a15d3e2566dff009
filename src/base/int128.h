/* 128-bit integers. */
#ifndef SX_BASE_INT128_H
#define SX_BASE_INT128_H

__extension__ typedef __int128 sx_i128;
__extension__ typedef unsigned __int128 sx_u128;

#define SX_I128_MAX ((sx_i128)(~(sx_u128)0 >> 1))
#define SX_I128_MIN (-SX_I128_MAX - 1)
#define SX_U128_MAX (~(sx_u128)0)

#endif
