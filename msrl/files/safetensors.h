// Named arrays on disk, in the safetensors format: a JSON header, then plain bytes. Python's
// `safetensors` reads what is written here. Loading runs no code.
#ifndef MSRL_FILES_SAFETENSORS_H_
#define MSRL_FILES_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msrl {

class Folder;

enum class TensorType { kU8, kI64, kF32, kF64 };
using Shape = std::vector<std::int64_t>;

// "U8", "I64", "F32", "F64".
std::string_view TensorTypeName(TensorType type);
std::size_t TensorItemSize(TensorType type);

// Collects tensors, then writes them all. Row-major: the last dimension is contiguous.
class TensorFileBuilder {
 public:
  // The values are not copied: they must stay as they are until the last Encode or Write. The
  // product of the shape is their number; names are unique.
  void Add(std::string name, std::span<const float> values, Shape shape);
  void Add(std::string name, std::span<const double> values, Shape shape);
  void Add(std::string name, std::span<const std::int64_t> values, Shape shape);
  void Add(std::string name, std::span<const std::uint8_t> values, Shape shape);
  // For values that would not live long enough.
  template <typename T>
  void AddCopy(std::string name, std::span<const T> values, Shape shape) {
    Add(std::move(name), Keep(values), std::move(shape));
  }
  void SetMetadata(std::string key, std::string value);
  // "NAME[3] is nan", of the first value that is not finite; empty if all are.
  std::string BadNumber() const;

  // Both add the checksum of the whole file to its metadata.
  std::string Encode() const;
  void Write(const std::filesystem::path& path) const;
  void Write(const Folder& folder, const std::string& name) const;

 private:
  struct Entry {
    std::string name;
    TensorType type;
    Shape shape;
    std::span<const std::byte> bytes;
  };

  void AddEntry(Entry entry);
  template <typename T>
  std::span<const T> Keep(std::span<const T> values) {
    // 64-bit words: aligned for every type
    std::vector<std::uint64_t>& words = kept_.emplace_back((values.size_bytes() + 7) / 8);
    T* copy = reinterpret_cast<T*>(words.data());
    for (std::size_t i = 0; i < values.size(); ++i) copy[i] = values[i];
    return {copy, values.size()};
  }
  // The pieces of the file; views of `header` and of the tensors.
  std::vector<std::string_view> Pieces(std::string& header) const;

  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
  std::deque<std::vector<std::uint64_t>> kept_;
};

struct TensorInfo {
  std::string name;
  TensorType type = TensorType::kU8;
  Shape shape;
};

// A file that was read. Everything is checked before a value is handed out: header size, types,
// shapes, bounds, holes, overlaps, names, and the checksum if there is one. Each problem is a
// UserError.
class TensorFile {
 public:
  // The header is read into many small objects; these keep a hostile one below 100 ms and 64 MB.
  static constexpr std::uint64_t kMaxHeaderBytes = 8'000'000;
  static constexpr std::size_t kMaxEntries = 50'000;
  static constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 36;

  // `source` is what errors call the bytes.
  static TensorFile Parse(std::span<const std::byte> bytes, std::string_view source);
  // Data is only read, and memory only taken, if the header fits the size of the file. MemoryError
  // if there is not enough.
  static TensorFile Read(const std::filesystem::path& path);
  // Without the data, whatever its size: for callers that can refuse a file by its metadata and
  // tensors(). No values can be asked for, and the checksum is not checked.
  static TensorFile ReadHeader(const std::filesystem::path& path);

  const std::string& source() const { return source_; }
  // Sorted by name.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Whether the file has a checksum; it was then right, if there is data.
  bool has_checksum() const { return has_checksum_; }

  // Null if there is none of that name.
  const TensorInfo* Find(std::string_view name) const;
  // Views into this object. UserError if there is no tensor of that name, type and shape.
  std::span<const float> F32(std::string_view name, const Shape& shape) const;
  std::span<const double> F64(std::string_view name, const Shape& shape) const;
  std::span<const std::int64_t> I64(std::string_view name, const Shape& shape) const;
  std::span<const std::uint8_t> U8(std::string_view name, const Shape& shape) const;

 private:
  struct Header;
  TensorFile(const Header& header, std::string_view source);
  // `next` fills in the bytes of one tensor after the other, in the order of the file.
  void TakeData(const Header& header, const std::function<void(std::span<std::byte>)>& next);
  std::span<const std::byte> Require(std::string_view name, TensorType type,
                                     const Shape& shape) const;

  std::string source_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::size_t> first_word_;  // of each tensor
  std::vector<std::uint64_t> words_;
  std::map<std::string, std::string> metadata_;
  bool has_checksum_ = false;
};

}  // namespace msrl

#endif  // MSRL_FILES_SAFETENSORS_H_
