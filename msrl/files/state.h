// Complete state as named tensors: what checkpoints are made of.
//
//   void Save(StateWriter state) const {
//     state.View("parameters", parameters_, {rows_, columns_});
//     state.Int("updates", updates_);
//     optimiser_.Save(state.Child("optimiser"));
//   }
//   void Load(StateReader state) {  // the mirror image; UserError on what does not fit
//     state.Into("parameters", parameters_, {rows_, columns_});
//     updates_ = state.Int("updates", 0, INT64_MAX);
//     optimiser_.Load(state.Child("optimiser"));
//   }
#ifndef MSRL_FILES_STATE_H_
#define MSRL_FILES_STATE_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/files/safetensors.h"

namespace msrl {

// A place in a tree of names; cheap to copy. Names below it are joined by '/'.
class StateWriter {
 public:
  explicit StateWriter(TensorFileBuilder& file) : file_(&file) {}
  StateWriter Child(std::string_view name) const;

  // Large arrays are not copied: they must stay unchanged until the file is written.
  void View(std::string_view name, std::span<const float> values, Shape shape) const;
  void View(std::string_view name, std::span<const double> values, Shape shape) const;
  void View(std::string_view name, std::span<const std::int64_t> values, Shape shape) const;
  void View(std::string_view name, std::span<const std::uint8_t> values, Shape shape) const;

  // For arrays that would not live long enough.
  template <typename T>
  void Copy(std::string_view name, std::span<const T> values, Shape shape) const {
    file_->AddCopy(Name(name), values, std::move(shape));
  }

  void Int(std::string_view name, std::int64_t value) const;
  void Word(std::string_view name, std::uint64_t value) const;
  void Bool(std::string_view name, bool value) const { Int(name, value ? 1 : 0); }
  void Double(std::string_view name, double value) const;
  void Text(std::string_view name, std::string_view text) const;
  void Bytes(std::string_view name, std::span<const std::byte> bytes) const;
  void Random(std::string_view name, const Rng& rng) const;

 private:
  StateWriter(TensorFileBuilder& file, std::string prefix)
      : file_(&file), prefix_(std::move(prefix)) {}
  std::string Name(std::string_view name) const { return prefix_ + std::string(name); }

  TensorFileBuilder* file_;
  std::string prefix_;
};

// Reads what a StateWriter wrote; every mismatch of name, type, shape or range is a UserError.
class StateReader {
 public:
  // Both must outlive the reader and its children. `used` collects the names that were asked for.
  StateReader(const TensorFile& file, std::set<std::string>& used) : file_(&file), used_(&used) {}
  StateReader Child(std::string_view name) const;
  bool Has(std::string_view name) const { return file_->Find(Name(name)) != nullptr; }

  // Copies into existing storage of the right size.
  void Into(std::string_view name, std::span<float> out, const Shape& shape) const;
  void Into(std::string_view name, std::span<double> out, const Shape& shape) const;
  void Into(std::string_view name, std::span<std::int64_t> out, const Shape& shape) const;
  void Into(std::string_view name, std::span<std::uint8_t> out, const Shape& shape) const;

  // In {low, ..., high}.
  std::int64_t Int(std::string_view name, std::int64_t low, std::int64_t high) const;
  std::uint64_t Word(std::string_view name) const;
  bool Bool(std::string_view name) const { return Int(name, 0, 1) == 1; }
  double Double(std::string_view name) const;
  std::string Text(std::string_view name) const;
  std::vector<std::byte> Bytes(std::string_view name) const;
  Rng Random(std::string_view name) const;

  // UserError if a tensor below this place was never asked for.
  void RequireAllUsed() const;
  [[noreturn]] void Fail(std::string_view name, std::string_view problem) const;

 private:
  StateReader(const TensorFile& file, std::set<std::string>& used, std::string prefix)
      : file_(&file), used_(&used), prefix_(std::move(prefix)) {}
  std::string Name(std::string_view name) const { return prefix_ + std::string(name); }
  std::string Use(std::string_view name) const;

  const TensorFile* file_;
  std::set<std::string>* used_;
  std::string prefix_;
};

}  // namespace msrl

#endif  // MSRL_FILES_STATE_H_
