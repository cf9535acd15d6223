// The table of source pretraining: rows of sources, columns of figures, the paper's beside ours.
#ifndef MSRL_TRANSFER_PRETRAIN_TABLE_H_
#define MSRL_TRANSFER_PRETRAIN_TABLE_H_

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

}  // namespace msrl

#endif  // MSRL_TRANSFER_PRETRAIN_TABLE_H_
