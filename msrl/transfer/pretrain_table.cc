#include "msrl/transfer/pretrain_table.h"

#include <nlohmann/json.hpp>

#include "msrl/core/config.h"

namespace msrl {

MeanStd PretrainRow::Of(const std::string& column) const {
  std::vector<double> values;
  for (const PretrainFigures& run : runs) values.push_back(run.at(column));
  return MeanAndStd(values);
}

std::string ToJson(std::span<const PretrainRow> rows, const PretrainerEntry& pretrainer,
                   std::span<const std::string> settings, std::string_view train_hash,
                   std::string_view validation_hash) {
  using Json = nlohmann::ordered_json;
  Json document;
  document["kind"] = pretrainer.id;
  for (const ConfigField& field : pretrainer.options(settings)) {
    document["config"][field.key] = Json::parse(field.value);
  }
  document["dataset"] = train_hash;
  document["validation_dataset"] = validation_hash;
  document["rows"] = Json::array();
  const auto add = [](Json& object, const std::string& key, const MeanStd& value) {
    object[key] = value.mean;
    object[key + "_std"] = value.std;
  };
  for (const PretrainRow& row : rows) {
    Json object{{"source", row.name}, {"seeds", row.runs.size()}};
    Json paper;
    for (const PretrainColumn& column : pretrainer.columns) {
      add(object, column.key, row.Of(column.key));
      const auto figure = pretrainer.paper(row.name, column.key);
      if (figure) add(paper, column.key, {figure->mean, figure->std.value()});
    }
    object["paper"] = std::move(paper);
    document["rows"].push_back(std::move(object));
  }
  return document.dump(2);
}

}  // namespace msrl
