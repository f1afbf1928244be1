
/* Arithmetic on sizes. What leaves 64 bits or divides by zero sets `bad`. */
static inline int64_t rtc_add(int64_t a, int64_t b, bool *bad) {
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return *bad = true, 0;
    return a + b;
}
static inline int64_t rtc_sub(int64_t a, int64_t b, bool *bad) {
    if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b)
        return *bad = true, 0;
    return a - b;
}
static inline int64_t rtc_mul(int64_t a, int64_t b, bool *bad) {
    if (a == 0 || b == 0)
        return 0;
    if ((a == -1 && b == INT64_MIN) || (b == -1 && a == INT64_MIN))
        return *bad = true, 0;
    bool fits = (a > 0) == (b > 0) ? (a > 0 ? a <= INT64_MAX / b : b >= INT64_MAX / a)
                                   : (a > 0 ? b >= INT64_MIN / a : a >= INT64_MIN / b);
    return fits ? a * b : (*bad = true, 0);
}
static inline int64_t rtc_floordiv(int64_t a, int64_t b, bool *bad) {
    if (b == 0 || (a == INT64_MIN && b == -1))
        return *bad = true, 0;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t rtc_mod(int64_t a, int64_t b, bool *bad) {
    if (b == 0)
        return *bad = true, 0;
    if (b == -1)
        return 0;
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline int64_t rtc_cdiv(int64_t a, int64_t b, bool *bad) {
    if (b == 0 || (a == INT64_MIN && b == -1))
        return *bad = true, 0;
    return a / b + (a % b != 0 && (a < 0) == (b < 0));
}
static inline int64_t rtc_min(int64_t a, int64_t b, bool *bad) {
    return (void)bad, a < b ? a : b;
}
static inline int64_t rtc_max(int64_t a, int64_t b, bool *bad) {
    return (void)bad, a > b ? a : b;
}
