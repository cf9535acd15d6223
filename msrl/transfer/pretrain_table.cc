#include "msrl/transfer/pretrain_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "msrl/core/config.h"

namespace msrl {
namespace {

using Json = nlohmann::ordered_json;

MeanStd Over(const std::vector<PretrainFigures>& runs, const std::string& column) {
  std::vector<double> values;
  for (const PretrainFigures& run : runs) values.push_back(run.at(column));
  return MeanAndStd(values);
}

void Add(Json& object, const std::string& key, const MeanStd& value) {
  object[key] = value.mean;
  object[key + "_std"] = value.std;
}

Json ConfigOf(const PretrainerEntry& pretrainer, std::span<const std::string> settings) {
  Json config;
  for (const ConfigField& field : pretrainer.options(settings)) {
    config[field.key] = Json::parse(field.value);
  }
  return config;
}

}  // namespace

MeanStd PretrainRow::Of(const std::string& column) const { return Over(runs, column); }

std::string ToJson(std::span<const PretrainRow> rows, const PretrainerEntry& pretrainer,
                   std::span<const std::string> settings, std::string_view train_hash,
                   std::string_view validation_hash) {
  Json document;
  document["kind"] = pretrainer.id;
  document["config"] = ConfigOf(pretrainer, settings);
  document["dataset"] = train_hash;
  document["validation_dataset"] = validation_hash;
  document["rows"] = Json::array();
  for (const PretrainRow& row : rows) {
    Json object{{"source", row.name}, {"seeds", row.runs.size()}};
    Json paper;
    for (const PretrainColumn& column : pretrainer.columns) {
      Add(object, column.key, row.Of(column.key));
      const auto figure = pretrainer.paper(row.name, column.key);
      if (figure) Add(paper, column.key, {figure->mean, figure->std.value()});
    }
    object["paper"] = std::move(paper);
    document["rows"].push_back(std::move(object));
  }
  return document.dump(2);
}

std::vector<PretrainColumn> ColumnsOf(std::span<const ComparedKind> kinds) {
  std::vector<PretrainColumn> columns;
  for (const ComparedKind& kind : kinds) {
    for (const PretrainColumn& column : kind.pretrainer->columns) {
      if (std::ranges::find(columns, column.key, &PretrainColumn::key) == columns.end()) {
        columns.push_back(column);
      }
    }
  }
  return columns;
}

std::optional<MeanStd> FigureOf(const ComparedKind& kind, const std::string& column) {
  const auto& own = kind.pretrainer->columns;
  if (std::ranges::find(own, column, &PretrainColumn::key) == own.end()) return std::nullopt;
  return Over(kind.runs, column);
}

std::string ToJson(std::span<const ComparedKind> kinds, std::string_view train_hash,
                   std::string_view validation_hash) {
  Json document;
  document["dataset"] = train_hash;
  document["validation_dataset"] = validation_hash;
  document["kinds"] = Json::array();
  for (const ComparedKind& kind : kinds) {
    Json object{{"kind", kind.pretrainer->id},
                {"seeds", kind.runs.size()},
                {"config", ConfigOf(*kind.pretrainer, kind.settings)},
                {"parameters", kind.parameters}};
    for (const PretrainColumn& column : kind.pretrainer->columns) {
      Add(object, column.key, *FigureOf(kind, column.key));
    }
    document["kinds"].push_back(std::move(object));
  }
  return document.dump(2);
}

}  // namespace msrl
