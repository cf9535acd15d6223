#include "msrl/transfer/dataset_map.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/toml.h"

namespace msrl {
namespace {

constexpr float kGeometryBound = 4.0F;
constexpr double kLeastUnit = 1e-9;
constexpr double kMostUnit = 1e9;
constexpr std::int64_t kMaxEntries = 1'000'000;

struct NamedSlots {
  const char* name;
  int first;
  int count;
};
// The position first: a goal that is a place is seen from it.
constexpr std::array<NamedSlots, 5> kNamedSlots{
    {{"position", 0, 2}, {"goal", 2, 2}, {"motion", 4, 2}, {"posture", 6, 1}, {"contact", 7, 1}}};

class MapReader {
 public:
  explicit MapReader(std::string_view file) : file_(file) {}

  [[noreturn]] void Fail(const toml::node& node, const std::string& what) const {
    throw UserError(StrCat(file_, ":", node.source().begin.line, ": ", OneLine(what)));
  }
  void Allow(const toml::table& table, std::span<const std::string> known) const {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (std::ranges::find(known, name) != known.end()) continue;
      Fail(node, StrCat("unknown key '", name, "'", DidYouMean(name, known)));
    }
  }
  double Number(const toml::node& node, std::string_view what) const {
    const std::optional<double> number = node.value<double>();
    if (!node.is_number() || !number || !std::isfinite(*number)) {
      Fail(node, StrCat(what, " must be a finite number"));
    }
    return *number;
  }
  double Positive(const toml::table& table, const char* key, double otherwise) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return otherwise;
    const double number = Number(*node, key);
    if (number <= 0.0) Fail(*node, StrCat(key, " must be more than 0"));
    return number;
  }
  std::string Text(const toml::node& node, std::string_view what) const {
    const std::optional<std::string> text = node.value<std::string>();
    if (!node.is_string() || !text || text->empty() || std::ranges::any_of(*text, IsControl)) {
      Fail(node, StrCat(what, " must be one line of text in quotes"));
    }
    return *text;
  }
  int Entry(const toml::node& node, std::string_view what) const {
    const std::optional<std::int64_t> entry = node.value<std::int64_t>();
    if (!node.is_integer() || !entry || *entry < 0 || *entry >= kMaxEntries) {
      Fail(node, StrCat(what, " must name entries of the observation: 0, 1, ..."));
    }
    return static_cast<int>(*entry);
  }
  // The elements of a list, or the node itself.
  static std::vector<const toml::node*> Items(const toml::node& node) {
    std::vector<const toml::node*> items;
    if (const toml::array* list = node.as_array()) {
      for (const toml::node& item : *list) items.push_back(&item);
    } else {
      items.push_back(&node);
    }
    return items;
  }
  std::vector<double> Numbers(const toml::table& table, const char* key) const {
    std::vector<double> numbers;
    if (const toml::node* node = table.get(key)) {
      for (const toml::node* item : Items(*node)) numbers.push_back(Number(*item, key));
    }
    return numbers;
  }

 private:
  std::string_view file_;
};

// [geometry]
class SlotReader {
 public:
  explicit SlotReader(const MapReader& reader) : reader_(reader) {}

  SlotMap Read(const toml::table& table) {
    std::vector<std::string> names;
    for (const NamedSlots& slots : kNamedSlots) names.emplace_back(slots.name);
    reader_.Allow(table, names);
    for (const NamedSlots& slots : kNamedSlots) {
      if (const toml::node* node = table.get(slots.name)) Add(slots, *node);
    }
    return map_;
  }

 private:
  void Add(const NamedSlots& slots, const toml::node& node) {
    const bool is_position = slots.first == 0;
    const bool is_goal = slots.first == 2;
    const toml::node* listed = &node;
    std::string kind = "entries";
    double unit = 1.0;
    if (const toml::table* table = node.as_table()) {
      const std::vector<std::string> kinds =
          is_goal ? std::vector<std::string>{"entries", "at", "place"}
                  : std::vector<std::string>{"entries"};
      std::vector<std::string> known = kinds;
      known.emplace_back("unit");
      reader_.Allow(*table, known);
      listed = nullptr;
      for (const std::string& name : kinds) {
        if (!table->contains(name)) continue;
        if (listed != nullptr) reader_.Fail(node, StrCat(slots.name, ": one of them only"));
        listed = table->get(name);
        kind = name;
      }
      if (listed == nullptr) reader_.Fail(node, StrCat(slots.name, " has no entries"));
      if (kind != "entries") unit = position_unit_;
      unit = reader_.Positive(*table, "unit", unit);
      if (unit < kLeastUnit || unit > kMostUnit) {
        reader_.Fail(node, StrCat("unit must be ", kLeastUnit, " to ", kMostUnit));
      }
    }
    if (is_position) position_unit_ = unit;
    const std::vector<const toml::node*> items = MapReader::Items(*listed);
    if (items.empty() || std::ssize(items) > slots.count) {
      reader_.Fail(node,
                   StrCat(slots.name, " has 1 to ", slots.count, " slots, got ", items.size()));
    }
    for (std::size_t axis = 0; axis < items.size(); ++axis) {
      const int slot = slots.first + static_cast<int>(axis);
      if (kind == "at") {
        map_.offset[static_cast<std::size_t>(slot)] =
            reader_.Number(*items[axis], slots.name) / unit;
      } else {
        map_.terms.push_back({slot, reader_.Entry(*items[axis], slots.name), 1.0 / unit});
      }
      if (is_position) position_.push_back(map_.terms.back().entry);
      if (kind == "entries") continue;
      if (axis >= position_.size()) {
        reader_.Fail(node, "the goal is a place, but there is no position to see it from");
      }
      map_.terms.push_back({slot, position_[axis], -1.0 / unit});
    }
  }

  const MapReader& reader_;
  SlotMap map_;
  std::vector<int> position_;  // entries, by axis
  double position_unit_ = 1.0;
};

}  // namespace

int SlotMap::MinObservationSize() const {
  int size = 0;
  for (const Term& term : terms) size = std::max(size, term.entry + 1);
  return size;
}

Eigen::MatrixXf SlotMap::Apply(const Eigen::MatrixXf& observations) const {
  MSRL_CHECK_GE(observations.rows(), MinObservationSize());
  Eigen::MatrixXd geometry(kGeometrySize, observations.cols());
  for (Eigen::Index slot = 0; slot < kGeometrySize; ++slot) {
    geometry.row(slot).setConstant(offset[static_cast<std::size_t>(slot)]);
  }
  for (const Term& term : terms) {
    geometry.row(term.slot) += term.weight * observations.row(term.entry).cast<double>();
  }
  return geometry.cast<float>().cwiseMax(-kGeometryBound).cwiseMin(kGeometryBound);
}

DatasetMap ParseDatasetMap(std::string_view text, std::string_view file) {
  const toml::table document = ParseToml(text, file);
  const MapReader reader(file);
  const std::vector<std::string> known{"env",        "reward_scale", "gamma",   "observations",
                                       "action_low", "action_high",  "geometry"};
  reader.Allow(document, known);
  DatasetMap map;
  const toml::node* env = document.get("env");
  if (env == nullptr) reader.Fail(document, "there is no env: a name for the environment");
  map.env = reader.Text(*env, "env");
  map.reward_scale = reader.Positive(document, "reward_scale", map.reward_scale);
  map.gamma = reader.Positive(document, "gamma", map.gamma);
  if (map.gamma >= 1.0) reader.Fail(*document.get("gamma"), "gamma must be less than 1");
  if (const toml::node* parts = document.get("observations")) {
    for (const toml::node* part : MapReader::Items(*parts)) {
      map.observations.push_back(reader.Text(*part, "observations"));
    }
  }
  map.action_low = reader.Numbers(document, "action_low");
  map.action_high = reader.Numbers(document, "action_high");
  bool fits = map.action_low.size() == map.action_high.size();
  for (std::size_t i = 0; fits && i < map.action_low.size(); ++i) {
    fits = map.action_low[i] < map.action_high[i];
  }
  if (!fits) reader.Fail(document, "action_low and action_high must have a pair for each action");
  const toml::node* geometry = document.get("geometry");
  if (geometry == nullptr || !geometry->is_table()) {
    reader.Fail(document, "there is no section [geometry]: what observations mean");
  }
  map.geometry = SlotReader(reader).Read(*geometry->as_table());
  return map;
}

DatasetMap ReadDatasetMap(const std::filesystem::path& path) {
  constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 20;
  return ParseDatasetMap(ReadWholeFile(path, kMaxBytes), path.string());
}

}  // namespace msrl
