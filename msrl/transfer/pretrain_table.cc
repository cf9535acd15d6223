#include "msrl/transfer/pretrain_table.h"

#include <nlohmann/json.hpp>

#include "msrl/core/config.h"
#include "msrl/core/text.h"

namespace msrl {
namespace {

constexpr PretrainColumn kColumns[] = {
    {"train_error", "train error", &PretrainMetrics::train_error, &PaperPretraining::train_error},
    {"validation_error", "validation error", &PretrainMetrics::validation_error,
     &PaperPretraining::validation_error},
    {"rank_correlation", "rank correlation", &PretrainMetrics::rank_correlation,
     &PaperPretraining::rank_correlation},
    {"centred_rank_correlation", "centred rank", &PretrainMetrics::centred_rank_correlation,
     nullptr},
    {"difference_correlation", "difference", &PretrainMetrics::difference_correlation, nullptr},
};

}  // namespace

MeanStd PretrainRow::Of(double PretrainMetrics::*field) const {
  std::vector<double> values;
  for (const PretrainMetrics& run : runs) values.push_back(run.*field);
  return MeanAndStd(values);
}

std::span<const PretrainColumn> PretrainColumns() { return kColumns; }

std::string ToJson(std::span<const PretrainRow> rows, const PretrainConfig& config,
                   std::string_view train_hash, std::string_view validation_hash) {
  nlohmann::ordered_json document;
  for (const ConfigField& field : ListFields(config)) {
    document["config"][field.key] = nlohmann::ordered_json::parse(field.value);
  }
  document["dataset"] = train_hash;
  document["validation_dataset"] = validation_hash;
  document["rows"] = nlohmann::ordered_json::array();
  for (const PretrainRow& row : rows) {
    nlohmann::ordered_json object;
    object["source"] = row.name;
    object["seeds"] = row.runs.size();
    for (const PretrainColumn& column : kColumns) {
      const MeanStd value = row.Of(column.field);
      object[column.key] = value.mean;
      object[StrCat(column.key, "_std")] = value.std;
    }
    object["paper"] = nullptr;
    if (const auto paper = PaperRow(row.name)) {
      object["paper"] = nlohmann::ordered_json::object();
      for (const PretrainColumn& column : kColumns) {
        if (column.paper == nullptr) continue;
        object["paper"][column.key] = ((*paper).*(column.paper)).mean;
        object["paper"][StrCat(column.key, "_std")] = ((*paper).*(column.paper)).std;
      }
    }
    document["rows"].push_back(object);
  }
  return document.dump(2);
}

}  // namespace msrl
