// The table of source pretraining: rows of sources, columns of figures, the paper's beside ours.
#ifndef MSRL_TRANSFER_PRETRAIN_TABLE_H_
#define MSRL_TRANSFER_PRETRAIN_TABLE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/transfer/pretrainer.h"

namespace msrl {

struct PretrainRow {
  std::string name;  // a source, or "mixed"
  std::vector<std::string> sources;
  std::vector<PretrainFigures> runs;  // one per seed

  MeanStd Of(const std::string& column) const;
};

// What `msrl pretrain --json` prints: settings, hashes of the data, rows.
std::string ToJson(std::span<const PretrainRow> rows, const PretrainerEntry& pretrainer,
                   std::span<const std::string> settings, std::string_view train_hash,
                   std::string_view validation_hash);

// What one kind of pretraining came to, beside others on the same episodes.
struct ComparedKind {
  const PretrainerEntry* pretrainer = nullptr;
  std::vector<std::string> settings;
  std::int64_t parameters = 0;        // numbers in its artefact
  std::vector<PretrainFigures> runs;  // one per seed
};
// The figures of all kinds, each once, in the order in which they come.
std::vector<PretrainColumn> ColumnsOf(std::span<const ComparedKind> kinds);
// The figure of a kind; nothing if it has none of this name.
std::optional<MeanStd> FigureOf(const ComparedKind& kind, const std::string& column);
// What `msrl pretrain --compare --json` prints.
std::string ToJson(std::span<const ComparedKind> kinds, std::string_view train_hash,
                   std::string_view validation_hash);

}  // namespace msrl

#endif  // MSRL_TRANSFER_PRETRAIN_TABLE_H_
