#include "msrl/artefacts/artefact.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "msrl/artefacts/old_formats.h"
#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"

namespace msrl {
namespace {

constexpr const char* kFormat = "msrl-artefact";
constexpr const char* kShape = "shape.";
constexpr const char* kMade = "made.";
constexpr std::size_t kMaxTexts = 1000;
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;

bool IsWord(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

// What is wrong with a header; empty: nothing.
std::string ProblemOf(const ArtefactHeader& header) {
  if (!IsWord(header.kind)) return StrCat("its kind is '", header.kind, "'");
  if (header.lift_kind != "none") LiftKindFromName(header.lift_kind);
  for (const ArtefactTexts* texts : {&header.shape, &header.made}) {
    if (texts->size() > kMaxTexts) return StrCat("it has more than ", kMaxTexts, " entries");
    for (const auto& [key, text] : *texts) {
      if (!IsWord(key)) return StrCat("an entry is called '", key, "'");
      if (text.size() > kMaxTextBytes) return StrCat("entry '", key, "' is too long");
    }
  }
  return {};
}

template <typename T>
void RequireFiniteValues(std::span<const T> values, const std::string& name,
                         const TextReader& texts) {
  if (!std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); })) {
    texts.Fail(StrCat("tensor '", name, "' holds a number that is not finite"));
  }
}

ArtefactHeader ReadHeader(TextReader& texts) {
  ArtefactHeader header;
  const std::string format = texts.Text("format");
  if (const OldFormat* const old = FindOldFormat(format)) {
    header = old->read(texts);
  } else {
    if (format != kFormat) texts.Fail("it has another format");
    texts.Int("version", 1, 1);
    header.kind = texts.Text("kind");
    header.lift = texts.Lift("lift_id");
    header.lift_kind = texts.Text("lift_kind");
    header.shape = texts.Below(kShape);
    header.made = texts.Below(kMade);
  }
  texts.RequireEnd();
  if (const std::string problem = ProblemOf(header); !problem.empty()) texts.Fail(problem);
  return header;
}

}  // namespace

const std::string& ArtefactHeader::Shape(const std::string& key) const {
  const auto found = shape.find(key);
  if (found == shape.end()) {
    throw UserError(StrCat("a ", kind, " without the entry '", kShape, key, "'"));
  }
  return found->second;
}

std::string ArtefactHeader::Made(const std::string& key) const {
  const auto found = made.find(key);
  return found == made.end() ? "none" : found->second;
}

std::string EncodeArtefact(const ArtefactHeader& header, TensorFileBuilder tensors) {
  MSRL_CHECK(ProblemOf(header).empty(), ProblemOf(header));
  tensors.SetMetadata("format", kFormat);
  tensors.SetMetadata("version", "1");
  tensors.SetMetadata("kind", header.kind);
  tensors.SetMetadata("lift_id", Hex(header.lift.value));
  tensors.SetMetadata("lift_kind", header.lift_kind);
  for (const auto& [key, text] : header.shape) tensors.SetMetadata(kShape + key, text);
  for (const auto& [key, text] : header.made) tensors.SetMetadata(kMade + key, text);
  return tensors.Encode();
}

Artefact Artefact::Parse(std::string contents, std::string_view source) {
  TensorFile file = TensorFile::Parse(std::as_bytes(std::span(contents)), source);
  const ArtefactTexts& metadata = file.metadata();
  TextReader texts(metadata, source);
  ArtefactHeader header = ReadHeader(texts);
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.type == TensorType::kF32) {
      RequireFiniteValues(file.F32(tensor.name, tensor.shape), tensor.name, texts);
    } else if (tensor.type == TensorType::kF64) {
      RequireFiniteValues(file.F64(tensor.name, tensor.shape), tensor.name, texts);
    }
  }
  return {std::move(contents), std::move(file), std::move(header)};
}

Artefact Artefact::Read(const std::filesystem::path& path) {
  const std::string source = path.string();
  const TensorFile header = TensorFile::ReadHeader(path);
  TextReader texts(header.metadata(), source);
  ReadHeader(texts);  // before a gigabyte of something else is read
  return Parse(ReadWholeFile(path, kMaxBytes), source);
}

std::int64_t Artefact::parameter_count() const {
  std::int64_t count = 0;
  for (const TensorInfo& tensor : tensors_.tensors()) {
    if (tensor.type != TensorType::kF32 && tensor.type != TensorType::kF64) continue;
    std::int64_t size = 1;
    for (const std::int64_t side : tensor.shape) size *= side;
    count += size;
  }
  return count;
}

void Artefact::Require(std::string_view kind, LiftId lift, bool any_lift) const {
  if (header_.kind != kind) {
    throw UserError(
        StrCat(source(), " is an artefact of kind '", header_.kind, "', not '", kind, "'"));
  }
  if (!any_lift && !(header_.lift == lift)) {
    throw UserError(StrCat(source(), ": the ", header_.kind, " was trained with lift ",
                           header_.lift.ToString(), " (", header_.lift_kind, "), this is lift ",
                           lift.ToString(), "; only the unaligned control may load it"));
  }
}

std::string TextReader::Text(const std::string& key) {
  const auto entry = left_.find(key);
  if (entry == left_.end()) Fail(StrCat("no entry '", key, "'"));
  return left_.extract(entry).mapped();
}

std::int64_t TextReader::Int(const std::string& key, std::int64_t low, std::int64_t high) {
  const std::string text = Text(key);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    Fail(StrCat("entry '", key, "' is '", text, "'"));
  }
  return value;
}

LiftId TextReader::Lift(const std::string& key) {
  const std::string text = Text(key);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size() || Hex(value) != text) {
    Fail(StrCat("entry '", key, "' is '", text, "'"));
  }
  return {value};
}

ArtefactTexts TextReader::Below(std::string_view prefix) {
  ArtefactTexts below;
  for (auto entry = left_.lower_bound(std::string(prefix));
       entry != left_.end() && entry->first.starts_with(prefix);) {
    below[entry->first.substr(prefix.size())] = std::move(entry->second);
    entry = left_.erase(entry);
  }
  return below;
}

void TextReader::RequireEnd() const {
  if (!left_.empty()) Fail(StrCat("unknown entry '", left_.begin()->first, "'"));
}

void TextReader::Fail(std::string_view problem) const {
  throw UserError(StrCat(source_, ": not an artefact of this version: ", problem));
}

}  // namespace msrl
