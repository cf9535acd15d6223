// MSRL_ADDRESS_SANITIZER is defined where the address sanitizer watches: it owns malloc, reserves
// more addresses than any limit allows, and takes its time.
#ifndef MSRL_CORE_SANITIZERS_H_
#define MSRL_CORE_SANITIZERS_H_

#if defined(__has_feature)  // clang
#if __has_feature(address_sanitizer)
#define MSRL_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)  // GCC
#define MSRL_ADDRESS_SANITIZER 1
#endif

#endif  // MSRL_CORE_SANITIZERS_H_
