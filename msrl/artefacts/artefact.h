// A pretrained thing as a file: what kind it is, the lift it speaks about, where it comes from, and
// tensors. What the tensors mean is the business of its kind; every agent says which it takes.
//
//   const Artefact artefact = Artefact::Read("branch.safetensors");
//   artefact.header().kind;               // "value-branch"
//   artefact.header().Made("dataset");    // provenance, for people and reports
//   const ValueBranch branch = ValueBranch::From(artefact, lift->id());
#ifndef MSRL_ARTEFACTS_ARTEFACT_H_
#define MSRL_ARTEFACTS_ARTEFACT_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "msrl/core/lift.h"
#include "msrl/files/safetensors.h"

namespace msrl {

using ArtefactTexts = std::map<std::string, std::string>;

struct ArtefactHeader {
  std::string kind;
  // Of the matrices that it was trained with; "none" if it never saw one.
  LiftId lift;
  std::string lift_kind = "none";
  // What its kind has to know to read the tensors; strict, unlike `made`.
  ArtefactTexts shape;
  // What made it. Every pretrainer writes
  //   pretrainer, options   which one, and all its options
  //   sources, dataset      source environments by commas, hash of the episodes
  //   target, control       what was learned ("none": nothing), what was broken on purpose ("none")
  //   seed, updates         gradient steps
  //   version, commit       of the program
  // and what else there is to say.
  ArtefactTexts made;

  // UserError if there is none of that name.
  const std::string& Shape(const std::string& key) const;
  // "none" if there is none of that name.
  std::string Made(const std::string& key) const;
  bool operator==(const ArtefactHeader&) const = default;
};

// The contents of a file. Kind and keys are lower-case words (letters, digits, '-', '_', '.').
std::string EncodeArtefact(const ArtefactHeader& header, TensorFileBuilder tensors);

class Artefact {
 public:
  static constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 30;

  // UserError that names `source` on anything that is not a whole artefact of finite numbers.
  // Branch files from before there were artefacts are read too.
  static Artefact Parse(std::string contents, std::string_view source);
  static Artefact Read(const std::filesystem::path& path);

  const ArtefactHeader& header() const { return header_; }
  const std::string& source() const { return tensors_.source(); }
  const TensorFile& tensors() const { return tensors_; }
  // All of the file.
  const std::string& contents() const { return contents_; }
  // How many numbers are in its F32 and F64 tensors.
  std::int64_t parameter_count() const;

  // UserError unless it is of this kind and lift; `any_lift` leaves the lift out.
  void Require(std::string_view kind, LiftId lift, bool any_lift = false) const;

 private:
  Artefact(std::string contents, TensorFile tensors, ArtefactHeader header)
      : contents_(std::move(contents)), tensors_(std::move(tensors)), header_(std::move(header)) {}

  std::string contents_;
  TensorFile tensors_;
  ArtefactHeader header_;
};

// The texts of a header or a file, each asked for once. UserErrors name `source`.
class TextReader {
 public:
  TextReader(const ArtefactTexts& texts, std::string_view source) : source_(source), left_(texts) {}

  std::string Text(const std::string& key);
  std::int64_t Int(const std::string& key, std::int64_t low, std::int64_t high);
  bool Flag(const std::string& key) { return Int(key, 0, 1) == 1; }
  LiftId Lift(const std::string& key);
  // Those that begin with `prefix`, without it.
  ArtefactTexts Below(std::string_view prefix);
  // Nothing may be left.
  void RequireEnd() const;
  [[noreturn]] void Fail(std::string_view problem) const;

 private:
  std::string source_;
  ArtefactTexts left_;
};

}  // namespace msrl

#endif  // MSRL_ARTEFACTS_ARTEFACT_H_
