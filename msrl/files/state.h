// Complete state as named tensors: what checkpoints are made of. A class lists what it consists of
// once, for writing and for reading.
//
//   void Visit(const Archive& state) {
//     state.Array("parameters", parameters_, {rows_, columns_});
//     state.Int("updates", updates_);
//     optimiser_.Visit(state.Child("optimiser"));
//   }
//   Archive(builder).Save(object);   // writing: nothing changes
//   object.Visit(Archive(file));     // reading: UserError on what does not fit
//
// An object whose reading failed holds a part of what was read: to be read anew or thrown away.
#ifndef MSRL_FILES_STATE_H_
#define MSRL_FILES_STATE_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msrl/core/bytes.h"
#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/files/safetensors.h"

namespace msrl {

// A place in a tree of names; cheap to copy. Names below it are joined by '/'. Every method writes
// the value, or reads it into its place; on reading, every mismatch of name, type, shape or range
// is a UserError.
class Archive {
 public:
  // Both files must outlive the archive and its children.
  explicit Archive(TensorFileBuilder& file) : to_(&file) {}
  explicit Archive(const TensorFile& file)
      : from_(&file), used_(std::make_shared<std::set<std::string>>()) {}
  Archive Child(std::string_view name) const;

  bool loading() const { return from_ != nullptr; }
  // Whether there is such a value to read, for what older files lack; true on writing.
  bool Has(std::string_view name) const { return !loading() || from_->Find(Name(name)) != nullptr; }

  // Large arrays are not copied: they must stay unchanged until the file is written. Their size is
  // known before; without a shape it is the shape.
  void Array(std::string_view name, std::span<float> values, Shape shape = {}) const;
  void Array(std::string_view name, std::span<double> values, Shape shape = {}) const;
  void Array(std::string_view name, std::span<std::int64_t> values, Shape shape = {}) const;
  void Array(std::string_view name, std::span<std::uint8_t> values, Shape shape = {}) const;
  // The same, copied: for arrays that would not live long enough.
  template <typename T>
  void Temporary(std::string_view name, std::vector<T>& values, Shape shape) const {
    if (loading()) return Array(name, values, std::move(shape));
    to_->AddCopy(Name(name), std::span<const T>(values), std::move(shape));
  }

  // In {low, ..., high}; to write another one is a defect.
  template <std::integral T>
  void Int(std::string_view name, T& value, std::int64_t low = 0,
           std::int64_t high = std::numeric_limits<T>::max()) const {
    auto wide = static_cast<std::int64_t>(value);
    WideInt(name, wide, low, high);
    if (loading()) value = static_cast<T>(wide);
  }
  void Bool(std::string_view name, bool& value) const { Int(name, value, 0, 1); }
  template <std::floating_point T>
  void Double(std::string_view name, T& value) const {
    auto wide = static_cast<double>(value);
    WideDouble(name, wide);
    if (loading()) value = static_cast<T>(wide);
  }
  void Text(std::string_view name, std::string& text) const;
  void Bytes(std::string_view name, std::vector<std::byte>& bytes) const;
  void Random(std::string_view name, Rng& rng) const;
  // An object with Save(ByteWriter&) and Load(ByteReader&).
  template <typename T>
  void Packed(std::string_view name, T& object) const {
    std::vector<std::byte> bytes;
    if (!loading()) {
      ByteWriter writer;
      object.Save(writer);
      bytes = writer.Take();
    }
    Bytes(name, bytes);
    if (!loading()) return;
    const std::string full = Name(name);
    ByteReader reader(bytes, full);
    object.Load(reader);
    reader.RequireEnd();
  }

  // What is fixed when the object is made: must be the same in a file that is read.
  void Same(std::string_view name, std::int64_t value) const { Int(name, value, value, value); }
  // The same for hashes and such; the error says that this "`problem`".
  void SameWord(std::string_view name, std::uint64_t value, std::string_view problem) const;

  // Writes an object that has Visit. Visit is not const, since it reads as well. A Visit that
  // writes must not assign anything, so this, and nothing else, may visit a const object.
  template <typename T>
  void Save(const T& object) const {
    MSRL_CHECK(!loading());
    const_cast<T&>(object).Visit(*this);
  }

  // Reading only. UserError if a tensor below this place was never asked for.
  void RequireAllUsed() const;
  [[noreturn]] void Fail(std::string_view name, std::string_view problem) const;

 private:
  std::string Name(std::string_view name) const { return prefix_ + std::string(name); }
  std::string Use(std::string_view name) const;
  template <typename T>
  void AnyArray(std::string_view name, std::span<T> values, Shape shape) const;
  void WideInt(std::string_view name, std::int64_t& value, std::int64_t low,
               std::int64_t high) const;
  void WideDouble(std::string_view name, double& value) const;

  // one of both
  TensorFileBuilder* to_ = nullptr;
  const TensorFile* from_ = nullptr;
  std::shared_ptr<std::set<std::string>> used_;  // names that were asked for
  std::string prefix_;
};

}  // namespace msrl

#endif  // MSRL_FILES_STATE_H_
