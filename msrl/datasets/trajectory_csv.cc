// CSV: header "episode,t,x0,...,a0,...,r", a row per state. The last row of an episode is its final
// state: its action and reward are empty.
#include <charconv>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/datasets/trajectory_file.h"

namespace msrl {
namespace {

using internal::RowTable;
using internal::TrajectoryCollector;

std::vector<std::string_view> SplitFields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view source) : text_(text), collector_(source) {}

  TrajectoryFile Read() && {
    ReadHeader();
    std::string_view line;
    for (line_number_ = 2; internal::NextLine(text_, line); ++line_number_) {
      if (!line.empty()) ReadRow(SplitFields(line));
    }
    if (open_) FailTruncated();
    return std::move(collector_).Finish();
  }

 private:
  [[noreturn]] void Fail(std::string_view problem) const { collector_.Fail(line_number_, problem); }
  [[noreturn]] void FailTruncated() const {
    collector_.Fail(line_number_ - 1, StrCat("episode ", name_,
                                             " has no final state (a row with empty action and "
                                             "reward); is the file truncated?"));
  }

  void ReadHeader() {
    std::string_view line;
    if (!internal::NextLine(text_, line)) Fail("the file is empty");
    const std::vector<std::string_view> names = SplitFields(line);
    std::vector<std::string> expected{"episode", "t"};
    const auto take = [&](const char* prefix, Index& count) {
      while (expected.size() < names.size() && names[expected.size()] == StrCat(prefix, count)) {
        expected.push_back(StrCat(prefix, count));
        ++count;
      }
    };
    take("x", d_);
    take("a", q_);
    expected.emplace_back("r");
    if (d_ == 0 || !std::equal(names.begin(), names.end(), expected.begin(), expected.end())) {
      Fail("the header must be episode,t,x0,x1,...,a0,a1,...,r");
    }
  }

  double Number(std::string_view field, std::string_view column) const {
    double value = 0.0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size() || field.empty()) {
      Fail(StrCat(column, " is not a number: '", field.substr(0, 40), "'"));
    }
    return value;
  }

  void ReadRow(const std::vector<std::string_view>& fields) {
    const auto columns = static_cast<std::size_t>(3 + d_ + q_);
    if (fields.size() != columns) {
      Fail(StrCat("row has ", fields.size(), " fields, the header ", columns));
    }
    if (fields[0].empty()) Fail("the episode is empty");
    if (open_ && fields[0] != name_) FailTruncated();
    if (!open_) StartEpisode(fields[0]);
    const std::string step = std::to_string(x_.rows);
    if (fields[1] != step) {
      Fail(StrCat("t is '", fields[1].substr(0, 40), "', expected ", step));
    }
    for (Index i = 0; i < d_; ++i) {
      x_.values.push_back(Number(fields[static_cast<std::size_t>(2 + i)], StrCat("x", i)));
    }
    ++x_.rows;

    const auto first_action = fields.begin() + 2 + d_;
    const bool final_state =
        std::all_of(first_action, fields.end(), [](std::string_view f) { return f.empty(); });
    if (final_state) {
      collector_.Add(line_number_, name_, x_, a_, r_);
      open_ = false;
      return;
    }
    for (Index k = 0; k < q_; ++k) a_.values.push_back(Number(first_action[k], StrCat("a", k)));
    ++a_.rows;
    r_.push_back(Number(fields.back(), "r"));
  }

  void StartEpisode(std::string_view name) {
    name_ = name;
    open_ = true;
    x_ = {.columns = d_, .rows = 0, .values = {}};
    a_ = {.columns = q_, .rows = 0, .values = {}};
    r_.clear();
  }

  std::string_view text_;
  TrajectoryCollector collector_;
  std::size_t line_number_ = 1;
  Index d_ = 0;
  Index q_ = 0;
  bool open_ = false;  // inside an episode, before its final state
  std::string name_;
  RowTable x_;
  RowTable a_;
  std::vector<double> r_;
};

}  // namespace

TrajectoryFile ParseTrajectoryCsv(std::string_view text, std::string_view source) {
  return CsvReader(text, source).Read();
}

}  // namespace msrl
