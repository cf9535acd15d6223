#include "msrl/files/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/checksum.h"
#include "msrl/files/memory.h"

namespace msrl {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::array kTypes{TensorType::kU8, TensorType::kI64, TensorType::kF32, TensorType::kF64};

// The checksum comes first in the header, so that it can be blanked where the whole file is hashed.
constexpr std::string_view kChecksumKey = "msrl_xxh64";
constexpr std::string_view kHeaderStart = "{\"__metadata__\":{\"msrl_xxh64\":\"";
constexpr std::size_t kSizeBytes = 8;
constexpr std::size_t kDigits = 16;
const std::string kBlank(kDigits, '0');

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The number of bytes that the shape asks for, false on overflow.
bool ByteCount(TensorType type, const Shape& shape, std::uint64_t& bytes) {
  bytes = TensorItemSize(type);
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) return false;
  }
  return true;
}

std::string ShapeText(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += StrCat(i == 0 ? "" : ", ", shape[i]);
  return text + "]";
}

struct ParsedTensor {
  TensorInfo info;
  std::vector<std::uint64_t> offsets;
  bool has_type = false;
  bool has_shape = false;
  bool has_offsets = false;
};

// Receives the header's events and refuses what is not in the format as soon as it comes.
class HeaderSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderSax(std::string_view source) : source_(source) {}

  bool null() override { Fail("null in the header"); }
  bool boolean(bool) override { Fail("true or false in the header"); }
  bool number_integer(number_integer_t) override { Fail("a negative number in the header"); }
  bool number_float(number_float_t, const string_t&) override { Fail("a fraction in the header"); }
  bool binary(binary_t&) override { Fail("binary data in the header"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) Fail("a number where none is expected");
    if (value > static_cast<std::uint64_t>(INT64_MAX)) Fail("a size beyond 2^63");
    if (field_ == "shape") {
      if (tensors.back().info.shape.size() >= 16) Fail("more than 16 dimensions");
      tensors.back().info.shape.push_back(static_cast<std::int64_t>(value));
    } else {
      if (tensors.back().offsets.size() >= 2) Fail("more than two data_offsets");
      tensors.back().offsets.push_back(value);
    }
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata_) {
      if (!metadata.emplace(field_, value).second) Fail("a metadata key appears twice");
      RequireFewer(metadata.size());
      return true;
    }
    if (depth_ != 2 || field_ != "dtype") Fail("text where none is expected");
    ParsedTensor& tensor = tensors.back();
    if (tensor.has_type) Fail("dtype appears twice");
    for (const TensorType type : kTypes) {
      if (TensorTypeName(type) != value) continue;
      tensor.info.type = type;
      tensor.has_type = true;
    }
    if (!tensor.has_type) {
      Fail(StrCat("tensor '", Shown(tensor.info.name), "' has dtype '", Shown(value),
                  "'; U8, I64, F32 and F64 are supported"));
    }
    return true;
  }
  bool start_object(std::size_t) override {
    if (in_array_ || depth_ == 2) Fail("brackets too deep in the header");
    ++depth_;
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) {
      in_metadata_ = value == "__metadata__";
      if (in_metadata_ && std::exchange(has_metadata_, true)) Fail("__metadata__ appears twice");
      if (!in_metadata_) tensors.emplace_back().info.name = value;
      RequireFewer(tensors.size());
    } else if (!in_metadata_ && value != "dtype" && value != "shape" && value != "data_offsets") {
      Fail(StrCat("unknown key '", Shown(value), "' in the header"));
    }
    if (depth_ == 2) field_ = value;
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && !in_metadata_) {
      const ParsedTensor& tensor = tensors.back();
      if (!tensor.has_type || !tensor.has_shape || tensor.offsets.size() != 2) {
        Fail(StrCat("tensor '", Shown(tensor.info.name), "' lacks dtype, shape or data_offsets"));
      }
    }
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || in_array_ || field_ == "dtype") {
      Fail("an array where none is expected");
    }
    ParsedTensor& tensor = tensors.back();
    bool& seen = field_ == "shape" ? tensor.has_shape : tensor.has_offsets;
    if (std::exchange(seen, true)) Fail(StrCat(field_, " appears twice"));
    in_array_ = true;
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    Fail(StrCat("the header is not JSON at byte ", position));
  }

  [[noreturn]] void Fail(std::string_view problem) const {
    throw UserError(StrCat(source_, ": not a safetensors file: ", problem));
  }
  // Names come from the file: cut, without control characters.
  static std::string Shown(const std::string& text) {
    std::string shown = text.substr(0, 60);
    for (char& c : shown) {
      if (static_cast<unsigned char>(c) < 0x20 || c == '\x7f') c = ' ';
    }
    return shown;
  }

  std::vector<ParsedTensor> tensors;
  std::map<std::string, std::string> metadata;

 private:
  void RequireFewer(std::size_t count) const {
    if (count <= TensorFile::kMaxEntries) return;
    Fail(StrCat("the header has more than ", TensorFile::kMaxEntries, " entries"));
  }

  std::string source_;
  std::string field_;
  int depth_ = 0;
  bool in_metadata_ = false;
  bool has_metadata_ = false;
  bool in_array_ = false;
};

}  // namespace

std::string_view TensorTypeName(TensorType type) {
  switch (type) {
    case TensorType::kU8:
      return "U8";
    case TensorType::kI64:
      return "I64";
    case TensorType::kF32:
      return "F32";
    case TensorType::kF64:
      break;
  }
  return "F64";
}

std::size_t TensorItemSize(TensorType type) {
  return type == TensorType::kU8 ? 1 : type == TensorType::kF32 ? 4 : 8;
}

void TensorFileBuilder::Add(std::string name, std::span<const float> values, Shape shape) {
  AddEntry({std::move(name), TensorType::kF32, std::move(shape), std::as_bytes(values)});
}
void TensorFileBuilder::Add(std::string name, std::span<const double> values, Shape shape) {
  AddEntry({std::move(name), TensorType::kF64, std::move(shape), std::as_bytes(values)});
}
void TensorFileBuilder::Add(std::string name, std::span<const std::int64_t> values, Shape shape) {
  AddEntry({std::move(name), TensorType::kI64, std::move(shape), std::as_bytes(values)});
}
void TensorFileBuilder::Add(std::string name, std::span<const std::uint8_t> values, Shape shape) {
  AddEntry({std::move(name), TensorType::kU8, std::move(shape), std::as_bytes(values)});
}

void TensorFileBuilder::AddEntry(Entry entry) {
  std::uint64_t bytes = 0;
  MSRL_CHECK(ByteCount(entry.type, entry.shape, bytes) && bytes == entry.bytes.size(), entry.name,
             " of shape ", ShapeText(entry.shape), " has ", entry.bytes.size(), " bytes");
  MSRL_CHECK(entry.name != "__metadata__", "a tensor can't have this name");
  for (const Entry& other : entries_) {
    MSRL_CHECK(other.name != entry.name, "two tensors named ", entry.name);
  }
  entries_.push_back(std::move(entry));
}

void TensorFileBuilder::SetMetadata(std::string key, std::string value) {
  MSRL_CHECK(key != kChecksumKey, "the checksum is set by the writer");
  metadata_[std::move(key)] = std::move(value);
}

std::string TensorFileBuilder::BadNumber() const {
  const auto first = [](const Entry& entry, auto item) -> std::string {
    using Item = decltype(item);
    const std::span values(reinterpret_cast<const Item*>(entry.bytes.data()),
                           entry.bytes.size() / sizeof(Item));
    // without a branch for each of millions: what is not finite makes the sum so
    Item sum = 0;
    for (const Item value : values) sum += value * Item{0};
    if (sum == 0) return {};
    const auto bad = std::ranges::find_if_not(values, [](Item v) { return std::isfinite(v); });
    return StrCat(entry.name, "[", bad - values.begin(), "] is ", *bad);
  };
  for (const Entry& entry : entries_) {
    std::string bad;
    if (entry.type == TensorType::kF32) bad = first(entry, float{});
    if (entry.type == TensorType::kF64) bad = first(entry, double{});
    if (!bad.empty()) return bad;
  }
  return {};
}

std::vector<std::string_view> TensorFileBuilder::Pieces(std::string& header) const {
  // wide items first: without holes, which the format forbids, all are aligned
  std::vector<const Entry*> order;
  for (const Entry& entry : entries_) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return TensorItemSize(a->type) > TensorItemSize(b->type);
  });

  nlohmann::ordered_json json;
  json["__metadata__"][std::string(kChecksumKey)] = kBlank;
  for (const auto& [key, value] : metadata_) json["__metadata__"][key] = value;
  std::uint64_t offset = 0;
  for (const Entry* entry : order) {
    const std::uint64_t end = offset + entry->bytes.size();
    // pushed at the end: looking for the key first would take quadratic time
    nlohmann::ordered_json value;
    value["dtype"] = TensorTypeName(entry->type);
    value["shape"] = entry->shape;
    value["data_offsets"] = {offset, end};
    json.get_ref<nlohmann::ordered_json::object_t&>().push_back({entry->name, std::move(value)});
    offset = end;
  }
  std::string text = json.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  MSRL_CHECK(text.starts_with(kHeaderStart));
  MSRL_CHECK_LE(text.size(), TensorFile::kMaxHeaderBytes);
  const std::uint64_t size = text.size();
  header.assign(reinterpret_cast<const char*>(&size), kSizeBytes);
  header += text;

  Xxh64 hash;
  hash.Add(std::as_bytes(std::span(header)));
  for (const Entry* entry : order) hash.Add(entry->bytes);
  header.replace(kSizeBytes + kHeaderStart.size(), kDigits, Hex(hash.Digest()));

  std::vector<std::string_view> pieces{header};
  for (const Entry* entry : order) pieces.push_back(AsText(entry->bytes));
  return pieces;
}

std::string TensorFileBuilder::Encode() const {
  std::string header;
  std::string file;
  for (const std::string_view piece : Pieces(header)) file += piece;
  return file;
}

void TensorFileBuilder::Write(const std::filesystem::path& path) const {
  std::string header;
  WriteFileAtomically(path, Pieces(header));
}

void TensorFileBuilder::Write(const Folder& folder, const std::string& name) const {
  std::string header;
  folder.Write(name, Pieces(header));
}

// What is known of a file before its data: that all tensors lie in it, one after the other.
struct TensorFile::Header {
  // The first byte of the data. `bytes` are the beginning of a file of `file_size` bytes: here its
  // first eight or more, for the constructor all of its header or more.
  static std::uint64_t EndOf(std::span<const std::byte> bytes, std::uint64_t file_size,
                             std::string_view source);
  Header(std::span<const std::byte> bytes, std::uint64_t file_size, std::string_view source);
  // Leaves the file at the first byte of its data.
  static Header ReadFrom(InputFile& file, std::string_view source);

  std::vector<ParsedTensor> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;
  std::string checksum;  // empty if there is none
  Xxh64 hash;            // of the header, as far as the checksum is concerned
  std::size_t words = 0;
};

std::uint64_t TensorFile::Header::EndOf(std::span<const std::byte> bytes, std::uint64_t file_size,
                                        std::string_view source) {
  const HeaderSax sax(source);
  if (bytes.size() < kSizeBytes) sax.Fail(StrCat("it has only ", bytes.size(), " bytes"));
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), kSizeBytes);
  if (size > kMaxHeaderBytes || size > file_size - kSizeBytes) {
    sax.Fail(StrCat("a header of ", size, " bytes does not fit"));
  }
  return kSizeBytes + size;
}

TensorFile::Header::Header(std::span<const std::byte> bytes, std::uint64_t file_size,
                           std::string_view source) {
  HeaderSax sax(source);
  const auto header_end = static_cast<std::size_t>(EndOf(bytes, file_size, source));
  bytes = bytes.first(header_end);
  const std::uint64_t data_size = file_size - header_end;
  const std::string_view text = AsText(bytes).substr(kSizeBytes);
  if (!text.starts_with('{')) sax.Fail("the header does not begin with {");
  nlohmann::json::sax_parse(text.begin(), text.end(), &sax);

  tensors = std::move(sax.tensors);
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.offsets[0], a.offsets[1]) < std::pair(b.offsets[0], b.offsets[1]);
  });
  std::set<std::string_view> names;
  std::uint64_t expected = 0;
  for (const ParsedTensor& tensor : tensors) {
    const std::string name = HeaderSax::Shown(tensor.info.name);
    const std::uint64_t begin = tensor.offsets[0];
    const std::uint64_t end = tensor.offsets[1];
    if (begin != expected || end < begin || end > data_size) {
      sax.Fail(StrCat("tensor '", name, "' is at [", begin, ", ", end, ") where ", expected,
                      " is the next byte of ", data_size));
    }
    std::uint64_t size = 0;
    if (!ByteCount(tensor.info.type, tensor.info.shape, size) || size != end - begin) {
      sax.Fail(StrCat("tensor '", name, "' of shape ", ShapeText(tensor.info.shape), " has ",
                      end - begin, " bytes"));
    }
    if (!names.insert(tensor.info.name).second) {
      sax.Fail(StrCat("two tensors are named '", name, "'"));
    }
    expected = end;
    words += static_cast<std::size_t>((size + 7) / 8);
  }
  if (expected != data_size) {
    sax.Fail(StrCat("it has ", data_size, " bytes of data, its tensors ", expected));
  }

  metadata = std::move(sax.metadata);
  const auto stored = metadata.find(std::string(kChecksumKey));
  if (stored == metadata.end()) return;
  checksum = stored->second;
  metadata.erase(stored);
  if (!text.starts_with(kHeaderStart) || text.substr(kHeaderStart.size(), kDigits) != checksum) {
    sax.Fail("the checksum is not where it belongs");
  }
  const std::size_t at = kSizeBytes + kHeaderStart.size();
  hash.Add(bytes.first(at));
  hash.Add(std::as_bytes(std::span(kBlank)));
  hash.Add(bytes.subspan(at + kDigits));
}

TensorFile::Header TensorFile::Header::ReadFrom(InputFile& file, std::string_view source) {
  std::vector<std::byte> bytes(kSizeBytes);
  bytes.resize(file.Read(bytes));
  bytes.resize(static_cast<std::size_t>(EndOf(bytes, file.size(), source)));
  file.ReadAll(std::span(bytes).subspan(kSizeBytes));
  return {bytes, file.size(), source};
}

TensorFile::TensorFile(const Header& header, std::string_view source)
    : source_(source), metadata_(header.metadata), has_checksum_(!header.checksum.empty()) {
  std::vector<std::pair<const TensorInfo*, std::size_t>> order;  // with the first word
  std::size_t word = 0;
  for (const ParsedTensor& tensor : header.tensors) {
    order.emplace_back(&tensor.info, word);
    word += static_cast<std::size_t>((tensor.offsets[1] - tensor.offsets[0] + 7) / 8);
  }
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.first->name < b.first->name; });
  for (const auto& [info, first] : order) {
    tensors_.push_back(*info);
    first_word_.push_back(first);
  }
}

void TensorFile::TakeData(const Header& header,
                          const std::function<void(std::span<std::byte>)>& next) {
  words_.resize(header.words);
  std::span<std::byte> left = std::as_writable_bytes(std::span(words_));
  Xxh64 hash = header.hash;
  for (const ParsedTensor& tensor : header.tensors) {
    const auto size = static_cast<std::size_t>(tensor.offsets[1] - tensor.offsets[0]);
    next(left.first(size));
    if (has_checksum_) hash.Add(left.first(size));
    left = left.subspan((size + 7) / 8 * 8);
  }
  if (has_checksum_ && Hex(hash.Digest()) != header.checksum) {
    HeaderSax(source_).Fail("damaged, the checksum is wrong");
  }
}

TensorFile TensorFile::Parse(std::span<const std::byte> bytes, std::string_view source) {
  const Header header(bytes, bytes.size(), source);
  TensorFile file(header, source);
  std::span<const std::byte> data =
      bytes.subspan(static_cast<std::size_t>(Header::EndOf(bytes, bytes.size(), source)));
  file.TakeData(header, [&data](std::span<std::byte> tensor) {
    std::copy_n(data.begin(), tensor.size(), tensor.begin());
    data = data.subspan(tensor.size());
  });
  return file;
}

TensorFile TensorFile::ReadHeader(const std::filesystem::path& path) {
  InputFile file(path);
  return {Header::ReadFrom(file, path.string()), path.string()};
}

TensorFile TensorFile::Read(const std::filesystem::path& path) {
  InputFile input(path);
  if (input.size() > kMaxFileBytes) {
    throw UserError(StrCat("cannot read ", path.string(), ": it has ", input.size(),
                           " bytes, more than ", kMaxFileBytes));
  }
  const Header header = Header::ReadFrom(input, path.string());
  TensorFile file(header, path.string());
  RequireMemory(8 * header.words, path.string());
  file.TakeData(header, [&input](std::span<std::byte> tensor) { input.ReadAll(tensor); });
  return file;
}

const TensorInfo* TensorFile::Find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const TensorInfo& info, std::string_view key) { return info.name < key; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

std::span<const std::byte> TensorFile::Require(std::string_view name, TensorType type,
                                               const Shape& shape) const {
  const TensorInfo* info = Find(name);
  if (info == nullptr) throw UserError(StrCat(source_, ": has no tensor '", name, "'"));
  if (info->type != type || info->shape != shape) {
    throw UserError(StrCat(source_, ": tensor '", name, "' is ", TensorTypeName(info->type), " ",
                           ShapeText(info->shape), ", expected ", TensorTypeName(type), " ",
                           ShapeText(shape)));
  }
  std::uint64_t bytes = 0;
  ByteCount(type, shape, bytes);
  const std::size_t word = first_word_[static_cast<std::size_t>(info - tensors_.data())];
  return std::as_bytes(std::span(words_)).subspan(8 * word, static_cast<std::size_t>(bytes));
}

namespace {
template <typename T>
std::span<const T> As(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}
}  // namespace

std::span<const float> TensorFile::F32(std::string_view name, const Shape& shape) const {
  return As<float>(Require(name, TensorType::kF32, shape));
}
std::span<const double> TensorFile::F64(std::string_view name, const Shape& shape) const {
  return As<double>(Require(name, TensorType::kF64, shape));
}
std::span<const std::int64_t> TensorFile::I64(std::string_view name, const Shape& shape) const {
  return As<std::int64_t>(Require(name, TensorType::kI64, shape));
}
std::span<const std::uint8_t> TensorFile::U8(std::string_view name, const Shape& shape) const {
  return As<std::uint8_t>(Require(name, TensorType::kU8, shape));
}

}  // namespace msrl
