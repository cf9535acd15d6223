// HDF5 in memory: what our episode files need of the C library, with handles that close themselves.
// Every failure of the library is a UserError that names the file and the place. As the library in
// Debian: one thread at a time.
#ifndef MSRL_DATASETS_HDF5_H_
#define MSRL_DATASETS_HDF5_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msrl::internal {

// Open things of one file; see hdf5.cc. Identifiers are HDF5's hid_t.
class H5Handle {
 public:
  using Close = int (*)(std::int64_t);
  H5Handle() = default;
  H5Handle(std::int64_t id, Close close) : id_(id), close_(close) {}
  H5Handle(H5Handle&& other) noexcept : id_(other.id_), close_(other.close_) { other.id_ = -1; }
  H5Handle& operator=(H5Handle&& other) noexcept;
  ~H5Handle();
  std::int64_t id() const { return id_; }

 private:
  std::int64_t id_ = -1;
  Close close_ = nullptr;
};

// Row-major shapes: the last dimension is contiguous.
using H5Shape = std::vector<std::uint64_t>;

class H5Writer {
 public:
  H5Writer();

  // Groups are made in between as needed; "a/b" is dataset b in group a.
  void Group(const std::string& path);
  void Floats(const std::string& path, std::span<const float> values, const H5Shape& shape);
  void Doubles(const std::string& path, std::span<const double> values, const H5Shape& shape);
  void Ints(const std::string& path, std::span<const std::int64_t> values, const H5Shape& shape);
  // The two-valued enumeration that Python's h5py reads as numpy.bool_.
  void Bools(const std::string& path, std::span<const std::uint8_t> values, const H5Shape& shape);
  // Attributes of a group; "" is the root.
  void TextAttribute(const std::string& group, const std::string& name, const std::string& text);
  void DoubleAttribute(const std::string& group, const std::string& name, double value);
  void IntAttribute(const std::string& group, const std::string& name, std::int64_t value);

  // The whole file.
  std::string Finish();

 private:
  void Write(const std::string& path, const void* values, std::int64_t memory_type,
             std::int64_t file_type, const H5Shape& shape);
  void Attribute(const std::string& group, const std::string& name, std::int64_t type,
                 const void* value);

  H5Handle file_, link_properties_, dataset_properties_, bool_type_;
};

// Files of strangers: links other than those to things in the file itself, data in other files and
// filters from outside are refused, and values must have some relation to the size of the file.
class H5Reader {
 public:
  // The bytes must outlive the reader. `source` is what errors call them.
  H5Reader(std::span<const std::byte> bytes, std::string_view source);

  bool Has(const std::string& path) const;
  // Names in a group, sorted.
  std::vector<std::string> Names(const std::string& group) const;
  // UserError if there is no such dataset, its type is of another class, it has other than `rank`
  // dimensions or more than `max_values` values.
  H5Shape ShapeOf(const std::string& path, std::size_t rank, std::uint64_t max_values) const;
  bool IsInteger(const std::string& path) const;
  std::vector<float> Floats(const std::string& path, const H5Shape& shape) const;
  std::vector<double> Doubles(const std::string& path, const H5Shape& shape) const;
  std::vector<std::int64_t> Ints(const std::string& path, const H5Shape& shape) const;
  std::vector<std::uint8_t> Bools(const std::string& path, const H5Shape& shape) const;

  bool HasAttribute(const std::string& group, const std::string& name) const;
  std::vector<std::string> AttributeNames(const std::string& group) const;
  std::string TextAttribute(const std::string& group, const std::string& name) const;
  double DoubleAttribute(const std::string& group, const std::string& name) const;
  std::int64_t IntAttribute(const std::string& group, const std::string& name) const;

  [[noreturn]] void Fail(std::string_view place, std::string_view problem) const;

 private:
  H5Handle Open(const std::string& path) const;
  void RequireGroup(const std::string& group) const;
  template <typename T>
  std::vector<T> Room(const std::string& path, const H5Shape& shape) const;
  H5Handle OpenAttribute(const std::string& group, const std::string& name) const;
  void Read(const std::string& path, const H5Shape& shape, std::int64_t memory_type,
            void* values) const;

  std::string source_;
  std::vector<std::byte> image_;
  H5Handle file_;
  mutable std::uint64_t budget_;  // bytes that may still be read
};

}  // namespace msrl::internal

#endif  // MSRL_DATASETS_HDF5_H_
