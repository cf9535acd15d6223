// A vector of floats that starts at a cache line.
#ifndef MSRL_NN_FLOAT_BUFFER_H_
#define MSRL_NN_FLOAT_BUFFER_H_

#include <cstddef>
#include <new>
#include <vector>

namespace msrl {

template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  CacheLineAllocator() = default;
  template <typename U>
  // NOLINTNEXTLINE(google-explicit-constructor): the standard wants allocators to convert
  CacheLineAllocator(const CacheLineAllocator<U>& /*other*/) {}

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, std::size_t /*n*/) { ::operator delete(p, kAlignment); }
  bool operator==(const CacheLineAllocator&) const = default;
};

using FloatBuffer = std::vector<float, CacheLineAllocator<float>>;

}  // namespace msrl

#endif  // MSRL_NN_FLOAT_BUFFER_H_
