#include "msrl/artefacts/old_formats.h"

#include "msrl/core/check.h"

namespace msrl {
namespace {

// Until version 0.1: the matrix-value branch was the only thing that was pretrained.
ArtefactHeader ReadBranch(TextReader& texts) {
  texts.Int("version", 1, 1);
  ArtefactHeader header{.kind = "value-branch",
                        .lift = texts.Lift("lift_id"),
                        .lift_kind = texts.Text("lift_kind"),
                        .shape = {},
                        .made = {}};
  for (const char* key : {"features", "feature_count", "width", "layers", "layer_norm"}) {
    header.shape[key] = texts.Text(key);
  }
  for (const char* key :
       {"sources", "dataset", "objective", "control", "target", "updates", "seed", "gamma"}) {
    header.made[key] = texts.Text(key);
  }
  header.made["pretrainer"] = header.kind;
  // no file ever said anything else
  texts.Int("reward_unit", 1, 1);
  return header;
}

constexpr OldFormat kOldFormats[] = {{"msrl-branch", ReadBranch}};

}  // namespace

const OldFormat* FindOldFormat(std::string_view format) {
  for (const OldFormat& old : kOldFormats) {
    if (old.format == format) return &old;
  }
  return nullptr;
}

}  // namespace msrl
