// JSON lines, one trajectory each: {"x": [[...] T+1 rows], "a": [[...] T rows], "r": [T numbers],
// "name": "optional"}.
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/datasets/trajectory_file.h"

namespace msrl {
namespace {

using internal::RowTable;
using internal::TrajectoryCollector;

// Receives one line's events and refuses whatever is not in the schema as soon as it comes, so that
// hostile input (deep nesting, huge keys) is never stored.
class TrajectorySax : public nlohmann::json_sax<nlohmann::json> {
 public:
  TrajectorySax(const TrajectoryCollector& errors, std::size_t line)
      : errors_(errors), line_(line) {}

  bool null() override { Fail("null is not a number"); }
  bool boolean(bool) override { Fail("true or false is not a number"); }
  bool number_integer(number_integer_t value) override {
    return Number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return Number(value); }
  bool binary(binary_t&) override { Fail("binary data"); }

  bool string(string_t& value) override {
    if (key_ != "name" || depth_ != 1) Fail("text where a number is expected");
    name_ = std::move(value);
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ != 0) Fail("an object inside a trajectory");
    depth_ = 1;
    return true;
  }
  bool key(string_t& value) override {
    static const std::vector<std::string> known{"x", "a", "r", "name"};
    if (std::find(known.begin(), known.end(), value) == known.end()) {
      const std::string shown = value.substr(0, 40);
      Fail(StrCat("unknown key \"", shown, "\" (a trajectory has x, a, r and name)"));
    }
    if (!seen_.insert(value).second) Fail(StrCat("key \"", value, "\" appears twice"));
    key_ = value;
    return true;
  }
  bool end_object() override {
    depth_ = 0;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0) Fail("a trajectory is an object {\"x\": ..., \"a\": ..., \"r\": ...}");
    const int deepest = key_ == "x" || key_ == "a" ? 3 : key_ == "r" ? 2 : 1;
    if (depth_ >= deepest) Fail(StrCat("brackets too deep in \"", key_, "\""));
    ++depth_;
    if (depth_ == 3) row_start_ = Table().values.size();
    return true;
  }
  bool end_array() override {
    if (depth_ == 3) EndRow();
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // keep the library's reason, without its prefix "[json.exception...] parse error at ...: "
    std::string reason = error.what();
    const std::size_t colon = reason.find(": ");
    if (colon != std::string::npos) reason = reason.substr(colon + 2);
    std::replace_if(
        reason.begin(), reason.end(),
        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; }, ' ');
    Fail(StrCat("not valid JSON at character ", position, ": ", reason.substr(0, 160)));
  }

  void MoveInto(TrajectoryCollector& collector) {
    for (const char* required : {"x", "r"}) {
      if (!seen_.contains(required)) Fail(StrCat("key \"", required, "\" is missing"));
    }
    collector.Add(line_, std::move(name_), x_, a_, r_);
  }

 private:
  [[noreturn]] void Fail(std::string_view problem) const { errors_.Fail(line_, problem); }
  RowTable& Table() { return key_ == "x" ? x_ : a_; }

  bool Number(double value) {
    if (key_ == "r" && depth_ == 2) {
      r_.push_back(value);
    } else if ((key_ == "x" || key_ == "a") && depth_ == 3) {
      Table().values.push_back(value);
    } else {
      Fail(depth_ == 0 ? StrCat("a number is not a trajectory")
                       : StrCat("a number where \"", key_, "\" does not take one"));
    }
    return true;
  }

  void EndRow() {
    RowTable& table = Table();
    const auto count = static_cast<Index>(table.values.size() - row_start_);
    if (table.columns < 0) table.columns = count;
    if (count != table.columns) {
      Fail(
          StrCat(key_, " row ", table.rows, " has ", count, " numbers, row 0 has ", table.columns));
    }
    ++table.rows;
  }

  const TrajectoryCollector& errors_;
  std::size_t line_;
  int depth_ = 0;  // 1 in the object, 2 in a value's outer array, 3 in a row
  std::string key_;
  std::set<std::string> seen_;
  std::size_t row_start_ = 0;
  std::string name_;
  RowTable x_;
  RowTable a_;
  std::vector<double> r_;
};

}  // namespace

TrajectoryFile ParseTrajectoryJson(std::string_view text, std::string_view source) {
  TrajectoryCollector collector(source);
  std::string_view line;
  for (std::size_t number = 1; internal::NextLine(text, line); ++number) {
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    TrajectorySax sax(collector, number);
    if (!nlohmann::json::sax_parse(line.begin(), line.end(), &sax)) {
      collector.Fail(number, "not valid JSON");
    }
    sax.MoveInto(collector);
  }
  return std::move(collector).Finish();
}

}  // namespace msrl
