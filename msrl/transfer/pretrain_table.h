// The table of source pretraining: rows of sources, columns of figures, the paper's beside ours.
#ifndef MSRL_TRANSFER_PRETRAIN_TABLE_H_
#define MSRL_TRANSFER_PRETRAIN_TABLE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/transfer/pretrain.h"

namespace msrl {

struct PretrainRow {
  std::string name;  // a source, or "mixed"
  std::vector<std::string> sources;
  std::vector<PretrainMetrics> runs;  // one per seed

  MeanStd Of(double PretrainMetrics::*field) const;
};

struct PretrainColumn {
  const char* key;
  const char* title;
  double PretrainMetrics::*field;
  MeanStd PaperPretraining::*paper;  // null: the paper has none
};

std::span<const PretrainColumn> PretrainColumns();

// What `msrl pretrain --json` prints: settings, hashes of the data, rows.
std::string ToJson(std::span<const PretrainRow> rows, const PretrainConfig& config,
                   std::string_view train_hash, std::string_view validation_hash);

}  // namespace msrl

#endif  // MSRL_TRANSFER_PRETRAIN_TABLE_H_
