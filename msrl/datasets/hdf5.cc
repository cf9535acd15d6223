#include "msrl/datasets/hdf5.h"

#include <hdf5.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "msrl/core/check.h"

namespace msrl::internal {
namespace {

static_assert(sizeof(hid_t) == sizeof(std::int64_t));
constexpr std::size_t kImageStep = std::size_t{1} << 20;
constexpr std::size_t kMaxText = std::size_t{1} << 20;
// Compression makes values of fewer bytes; what is never written takes none at all.
constexpr std::uint64_t kMaxExpansion = 64;
constexpr std::uint64_t kFreeBytes = std::uint64_t{1} << 20;

template <herr_t (*kClose)(hid_t)>
H5Handle Own(hid_t id) {
  return {id, [](std::int64_t handle) { return static_cast<int>(kClose(handle)); }};
}

// The library would print its own story.
void Quiet() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

void Require(bool good, std::string_view what) {
  if (!good) throw UserError(StrCat("HDF5 cannot ", what));
}

H5Handle Space(const H5Shape& shape) {
  const std::vector<hsize_t> sizes(shape.begin(), shape.end());
  return Own<H5Sclose>(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr));
}

// The library takes files of one name for one file.
std::string FreshName() {
  static std::atomic<std::uint64_t> count{0};
  return StrCat("msrl-in-memory-", count++);
}

const char* NameOf(const std::string& group) { return group.empty() ? "/" : group.c_str(); }

}  // namespace

H5Handle& H5Handle::operator=(H5Handle&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}

H5Handle::~H5Handle() {
  if (id_ >= 0 && close_ != nullptr) close_(id_);
}

H5Writer::H5Writer() {
  Quiet();
  const H5Handle access = Own<H5Pclose>(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.id(), kImageStep, /*backing_store=*/0);
  file_ = Own<H5Fclose>(H5Fcreate(FreshName().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()));
  Require(file_.id() >= 0, "make a file in memory");
  link_properties_ = Own<H5Pclose>(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(link_properties_.id(), 1);
  dataset_properties_ = Own<H5Pclose>(H5Pcreate(H5P_DATASET_CREATE));
  // equal contents, equal bytes
  H5Pset_obj_track_times(dataset_properties_.id(), 0);
  bool_type_ = Own<H5Tclose>(H5Tenum_create(H5T_NATIVE_INT8));
  for (const std::int8_t value : {std::int8_t{0}, std::int8_t{1}}) {
    H5Tenum_insert(bool_type_.id(), value == 0 ? "FALSE" : "TRUE", &value);
  }
}

void H5Writer::Group(const std::string& path) {
  const H5Handle group = Own<H5Gclose>(
      H5Gcreate2(file_.id(), path.c_str(), link_properties_.id(), H5P_DEFAULT, H5P_DEFAULT));
  Require(group.id() >= 0, "make group " + path);
}

void H5Writer::Write(const std::string& path, const void* values, std::int64_t memory_type,
                     std::int64_t file_type, const H5Shape& shape) {
  const H5Handle space = Space(shape);
  const H5Handle data =
      Own<H5Dclose>(H5Dcreate2(file_.id(), path.c_str(), file_type, space.id(),
                               link_properties_.id(), dataset_properties_.id(), H5P_DEFAULT));
  Require(data.id() >= 0, "make dataset " + path);
  const bool empty = std::find(shape.begin(), shape.end(), 0u) != shape.end();
  Require(empty || H5Dwrite(data.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0,
          "write dataset " + path);
}

void H5Writer::Floats(const std::string& path, std::span<const float> values,
                      const H5Shape& shape) {
  Write(path, values.data(), H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, shape);
}
void H5Writer::Doubles(const std::string& path, std::span<const double> values,
                       const H5Shape& shape) {
  Write(path, values.data(), H5T_NATIVE_DOUBLE, H5T_IEEE_F64LE, shape);
}
void H5Writer::Ints(const std::string& path, std::span<const std::int64_t> values,
                    const H5Shape& shape) {
  Write(path, values.data(), H5T_NATIVE_INT64, H5T_STD_I64LE, shape);
}
void H5Writer::Bools(const std::string& path, std::span<const std::uint8_t> values,
                     const H5Shape& shape) {
  Write(path, values.data(), bool_type_.id(), bool_type_.id(), shape);
}

void H5Writer::Attribute(const std::string& group, const std::string& name, std::int64_t type,
                         const void* value) {
  const H5Handle object = Own<H5Oclose>(H5Oopen(file_.id(), NameOf(group), H5P_DEFAULT));
  const H5Handle space = Own<H5Sclose>(H5Screate(H5S_SCALAR));
  const H5Handle attribute = Own<H5Aclose>(
      H5Acreate2(object.id(), name.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT));
  Require(attribute.id() >= 0 && H5Awrite(attribute.id(), type, value) >= 0,
          StrCat("write attribute ", name, " of ", NameOf(group)));
}

void H5Writer::TextAttribute(const std::string& group, const std::string& name,
                             const std::string& text) {
  const H5Handle type = Own<H5Tclose>(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.id(), std::max<std::size_t>(text.size(), 1));
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  Attribute(group, name, type.id(), text.c_str());
}
void H5Writer::DoubleAttribute(const std::string& group, const std::string& name, double value) {
  Attribute(group, name, H5T_NATIVE_DOUBLE, &value);
}
void H5Writer::IntAttribute(const std::string& group, const std::string& name, std::int64_t value) {
  Attribute(group, name, H5T_NATIVE_INT64, &value);
}

std::string H5Writer::Finish() {
  Require(H5Fflush(file_.id(), H5F_SCOPE_GLOBAL) >= 0, "finish the file");
  const ssize_t size = H5Fget_file_image(file_.id(), nullptr, 0);
  Require(size > 0, "finish the file");
  std::string image(static_cast<std::size_t>(size), '\0');
  Require(H5Fget_file_image(file_.id(), image.data(), image.size()) == size, "finish the file");
  return image;
}

H5Reader::H5Reader(std::span<const std::byte> bytes, std::string_view source)
    : source_(source),
      image_(bytes.begin(), bytes.end()),
      budget_(kMaxExpansion * bytes.size() + kFreeBytes) {
  Quiet();
  H5PLset_loading_state(0);  // filters are shared libraries
  const H5Handle access = Own<H5Pclose>(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.id(), kImageStep, /*backing_store=*/0);
  if (image_.empty() || H5Pset_file_image(access.id(), image_.data(), image_.size()) < 0) {
    throw UserError(StrCat(source_, ": not an HDF5 file"));
  }
  image_ = {};  // the library has its own copy
  file_ = Own<H5Fclose>(H5Fopen(FreshName().c_str(), H5F_ACC_RDONLY, access.id()));
  if (file_.id() < 0) throw UserError(StrCat(source_, ": not an HDF5 file"));
}

void H5Reader::Fail(std::string_view place, std::string_view problem) const {
  throw UserError(StrCat(source_, ": ", place.empty() ? "/" : place, ": ", problem));
}

bool H5Reader::Has(const std::string& path) const {
  // each link on the way must exist, and be the plain name of a thing, before the next is asked for
  for (std::size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    H5L_info_t info{};
    if (H5Lget_info(file_.id(), part.c_str(), &info, H5P_DEFAULT) < 0) return false;
    if (info.type != H5L_TYPE_HARD) Fail(part, "is a link; links are not followed");
    if (slash == std::string::npos) return true;
  }
}

void H5Reader::RequireGroup(const std::string& group) const {
  if (!group.empty() && !Has(group)) Fail(group, "no such group");
}

std::vector<std::string> H5Reader::Names(const std::string& group) const {
  RequireGroup(group);
  const H5Handle object = Own<H5Gclose>(H5Gopen2(file_.id(), NameOf(group), H5P_DEFAULT));
  if (object.id() < 0) Fail(group, "no such group");
  std::vector<std::string> names;
  const auto collect = [](hid_t /*group*/, const char* name, const H5L_info_t* /*info*/,
                          void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  hsize_t position = 0;
  if (H5Literate(object.id(), H5_INDEX_NAME, H5_ITER_INC, &position, collect, &names) < 0) {
    Fail(group, "its list of names cannot be read");
  }
  return names;
}

H5Handle H5Reader::Open(const std::string& path) const {
  if (!Has(path)) Fail(path, "no such dataset");
  H5Handle data = Own<H5Dclose>(H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT));
  if (data.id() < 0) Fail(path, "not a dataset");
  return data;
}

H5Shape H5Reader::ShapeOf(const std::string& path, std::size_t rank,
                          std::uint64_t max_values) const {
  const H5Handle data = Open(path);
  const H5Handle space = Own<H5Sclose>(H5Dget_space(data.id()));
  const int dimensions = H5Sget_simple_extent_ndims(space.id());
  if (dimensions < 0 || static_cast<std::size_t>(dimensions) != rank) {
    Fail(path, StrCat("has ", dimensions, " dimensions, expected ", rank));
  }
  std::vector<hsize_t> sizes(rank);
  H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr);
  std::uint64_t count = 1;
  for (const hsize_t size : sizes) {
    if (size > max_values || count * std::max<std::uint64_t>(size, 1) > max_values) {
      Fail(path, "is too large");
    }
    count *= std::max<std::uint64_t>(size, 1);
  }
  return {sizes.begin(), sizes.end()};
}

bool H5Reader::IsInteger(const std::string& path) const {
  const H5Handle data = Open(path);
  const H5Handle type = Own<H5Tclose>(H5Dget_type(data.id()));
  return H5Tget_class(type.id()) == H5T_INTEGER;
}

void H5Reader::Read(const std::string& path, const H5Shape& shape, std::int64_t memory_type,
                    void* values) const {
  std::uint64_t count = 1;
  for (const std::uint64_t size : shape) count *= size;
  if (ShapeOf(path, shape.size(), std::max<std::uint64_t>(count, 1)) != shape) {
    std::string text;
    for (const std::uint64_t size : shape) text += (text.empty() ? "" : " x ") + StrCat(size);
    Fail(path, StrCat("expected ", text, " values"));
  }
  const H5Handle data = Open(path);
  const H5Handle type = Own<H5Tclose>(H5Dget_type(data.id()));
  const H5T_class_t wanted = H5Tget_class(memory_type);
  const H5T_class_t got = H5Tget_class(type.id());
  const bool bool_as_number = wanted == H5T_INTEGER && got == H5T_ENUM;
  if (got != wanted && !bool_as_number) Fail(path, "has another type of values");
  if (count == 0) return;
  const H5Handle made = Own<H5Pclose>(H5Dget_create_plist(data.id()));
  if (H5Pget_external_count(made.id()) != 0 || H5Pget_layout(made.id()) == H5D_VIRTUAL) {
    Fail(path, "has its values in other files");
  }
  if (H5Dread(data.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
    Fail(path, "cannot be read");
  }
}

template <typename T>
std::vector<T> H5Reader::Room(const std::string& path, const H5Shape& shape) const {
  std::uint64_t count = 1;
  for (const std::uint64_t size : shape) count *= size;
  if (count > budget_ / sizeof(T)) {
    Fail(path, StrCat("the file is too small for so many values (", kMaxExpansion,
                      " bytes for each of the file are possible)"));
  }
  budget_ -= count * sizeof(T);
  return std::vector<T>(count);
}

std::vector<float> H5Reader::Floats(const std::string& path, const H5Shape& shape) const {
  auto values = Room<float>(path, shape);
  Read(path, shape, H5T_NATIVE_FLOAT, values.data());
  return values;
}
std::vector<double> H5Reader::Doubles(const std::string& path, const H5Shape& shape) const {
  auto values = Room<double>(path, shape);
  Read(path, shape, H5T_NATIVE_DOUBLE, values.data());
  return values;
}
std::vector<std::int64_t> H5Reader::Ints(const std::string& path, const H5Shape& shape) const {
  auto values = Room<std::int64_t>(path, shape);
  Read(path, shape, H5T_NATIVE_INT64, values.data());
  return values;
}

std::vector<std::uint8_t> H5Reader::Bools(const std::string& path, const H5Shape& shape) const {
  auto stored = Room<std::int8_t>(path, shape);
  const H5Handle data = Open(path);
  const H5Handle type = Own<H5Tclose>(H5Dget_type(data.id()));
  // an enumeration is read with its own type, if it is one byte wide
  const bool is_enum = H5Tget_class(type.id()) == H5T_ENUM;
  if (is_enum && H5Tget_size(type.id()) != 1) Fail(path, "is not a list of truth values");
  Read(path, shape, is_enum ? type.id() : H5T_NATIVE_INT8, stored.data());
  for (const std::int8_t value : stored) {
    if (value != 0 && value != 1) Fail(path, "is not a list of truth values");
  }
  return {stored.begin(), stored.end()};
}

bool H5Reader::HasAttribute(const std::string& group, const std::string& name) const {
  RequireGroup(group);
  return H5Aexists_by_name(file_.id(), NameOf(group), name.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::string> H5Reader::AttributeNames(const std::string& group) const {
  RequireGroup(group);
  std::vector<std::string> names;
  const auto collect = [](hid_t /*object*/, const char* name, const H5A_info_t* /*info*/,
                          void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  hsize_t position = 0;
  if (H5Aiterate_by_name(file_.id(), NameOf(group), H5_INDEX_NAME, H5_ITER_INC, &position, collect,
                         &names, H5P_DEFAULT) < 0) {
    Fail(group, "its attributes cannot be read");
  }
  return names;
}

H5Handle H5Reader::OpenAttribute(const std::string& group, const std::string& name) const {
  RequireGroup(group);
  H5Handle attribute = Own<H5Aclose>(
      H5Aopen_by_name(file_.id(), NameOf(group), name.c_str(), H5P_DEFAULT, H5P_DEFAULT));
  if (attribute.id() < 0) Fail(group, StrCat("no attribute '", name, "'"));
  const H5Handle space = Own<H5Sclose>(H5Aget_space(attribute.id()));
  if (H5Sget_simple_extent_npoints(space.id()) != 1) {
    Fail(group, StrCat("attribute '", name, "' is not one value"));
  }
  return attribute;
}

std::string H5Reader::TextAttribute(const std::string& group, const std::string& name) const {
  const H5Handle attribute = OpenAttribute(group, name);
  const H5Handle type = Own<H5Tclose>(H5Aget_type(attribute.id()));
  if (H5Tget_class(type.id()) != H5T_STRING) {
    Fail(group, StrCat("attribute '", name, "' is no text"));
  }
  if (H5Tis_variable_str(type.id()) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute.id(), type.id(), static_cast<void*>(&text)) < 0 || text == nullptr) {
      Fail(group, StrCat("attribute '", name, "' cannot be read"));
    }
    std::string copy(text);
    H5free_memory(text);
    return copy;
  }
  const std::size_t size = H5Tget_size(type.id());
  if (size > kMaxText) Fail(group, StrCat("attribute '", name, "' is too long"));
  std::string text(size, '\0');
  if (H5Aread(attribute.id(), type.id(), text.data()) < 0) {
    Fail(group, StrCat("attribute '", name, "' cannot be read"));
  }
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

double H5Reader::DoubleAttribute(const std::string& group, const std::string& name) const {
  const H5Handle attribute = OpenAttribute(group, name);
  const H5Handle type = Own<H5Tclose>(H5Aget_type(attribute.id()));
  double value = 0.0;
  if (H5Tget_class(type.id()) != H5T_FLOAT ||
      H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value) < 0) {
    Fail(group, StrCat("attribute '", name, "' is no number"));
  }
  return value;
}

std::int64_t H5Reader::IntAttribute(const std::string& group, const std::string& name) const {
  const H5Handle attribute = OpenAttribute(group, name);
  const H5Handle type = Own<H5Tclose>(H5Aget_type(attribute.id()));
  std::int64_t value = 0;
  if (H5Tget_class(type.id()) != H5T_INTEGER ||
      H5Aread(attribute.id(), H5T_NATIVE_INT64, &value) < 0) {
    Fail(group, StrCat("attribute '", name, "' is no whole number"));
  }
  return value;
}

}  // namespace msrl::internal
