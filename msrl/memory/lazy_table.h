// Fixed storage, `width` numbers per row, that takes memory from the system as it fills.
#ifndef MSRL_MEMORY_LAZY_TABLE_H_
#define MSRL_MEMORY_LAZY_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "msrl/files/state.h"

namespace msrl {

template <typename T>
struct LazyTable {
  std::unique_ptr<T[]> data;
  std::int64_t rows = 0;
  std::int64_t width = 0;

  void Allocate(std::int64_t row_count, std::int64_t row_width) {
    rows = row_count;
    width = row_width;
    // not filled: pages are taken from the system when they are first written
    data = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(rows * width));
  }
  std::span<T> Row(std::int64_t i) const {
    return {data.get() + i * width, static_cast<std::size_t>(width)};
  }
  // The first rows, as they are.
  void Visit(const Archive& state, std::string_view name, std::int64_t row_count) const {
    state.Array(name, std::span(data.get(), static_cast<std::size_t>(row_count * width)),
                {row_count, width});
  }
  std::int64_t bytes() const { return rows * width * static_cast<std::int64_t>(sizeof(T)); }
};

}  // namespace msrl

#endif  // MSRL_MEMORY_LAZY_TABLE_H_
