#include "msrl/testing/allocation_counter.h"

#include <atomic>
#include <cstddef>

#include "msrl/core/sanitizers.h"

namespace {
std::atomic<std::int64_t> g_allocations{0};
}  // namespace

#if defined(MSRL_ADDRESS_SANITIZER)

// The sanitizer owns malloc; it calls us back instead.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*,
                                                                  std::size_t),
                                                         void (*)(const volatile void*));
namespace {
void OnMalloc(const volatile void*, std::size_t) { ++g_allocations; }
void OnFree(const volatile void*) {}
[[maybe_unused]] const int kInstalled =
    __sanitizer_install_malloc_and_free_hooks(&OnMalloc, &OnFree);
}  // namespace

#else

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);

void* malloc(std::size_t size) {
  ++g_allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++g_allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  ++g_allocations;
  return __libc_realloc(old, size);
}
}  // extern "C"

#endif

namespace msrl::testing {

std::int64_t AllocationCount() { return g_allocations; }

}  // namespace msrl::testing
