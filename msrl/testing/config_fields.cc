#include "msrl/testing/config_fields.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "msrl/testing/user_error.h"

namespace msrl::testing {
namespace {

std::string NumberText(double value, bool integer) {
  if (integer) return std::to_string(static_cast<std::int64_t>(value));
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

double ParseNumber(const std::string& text) {
  double value = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct Borders {
  std::vector<std::string> inside, outside;
};

Borders BordersOf(const ConfigField& field) {
  Borders borders;
  const Range& range = field.range;
  const bool integer = field.type == "integer";
  const auto add = [&](double border, bool open, double away) {
    if (!std::isfinite(border)) return;
    const double step = range.even ? 2.0 : 1.0;
    const auto next = [&](double to) {
      return integer ? border + std::copysign(step, to) : std::nextafter(border, border + to);
    };
    borders.inside.push_back(NumberText(open ? next(-away) : border, integer));
    const double beyond = open ? border : next(away);
    if (beyond != range.special) borders.outside.push_back(NumberText(beyond, integer));
  };
  add(range.low, range.low_open, -1.0);
  add(range.high, range.high_open, 1.0);
  if (range.special) borders.inside.push_back(NumberText(*range.special, integer));
  if (range.even) borders.outside.push_back(NumberText(range.low + 1.0, integer));
  for (const char* text : {"nan", "inf", "-inf", "", "many"}) borders.outside.emplace_back(text);
  if (integer) borders.outside.emplace_back("1.5");
  return borders;
}

}  // namespace

void ExpectRangesHold(
    const std::string& what, const std::vector<ConfigField>& fields,
    const std::function<std::vector<ConfigField>(const std::string& assignment)>& apply) {
  for (const ConfigField& field : fields) {
    std::vector<std::string> accepted = {field.Text()};
    std::vector<std::string> refused;
    if (field.is_number()) {
      Borders borders = BordersOf(field);
      accepted.insert(accepted.end(), borders.inside.begin(), borders.inside.end());
      refused = std::move(borders.outside);
    } else if (!field.choices.empty()) {
      accepted.insert(accepted.end(), field.choices.begin(), field.choices.end());
      refused = {"no-such-choice"};
    } else if (field.type == "bool") {
      accepted = {"true", "false"};
      refused = {"1", ""};
    }
    const std::string about = "setting '" + field.key + "' ";
    for (const std::string& text : accepted) {
      std::vector<ConfigField> after;
      const std::string error = UserErrorText([&] { after = apply(field.key + "=" + text); });
      EXPECT_FALSE(error.starts_with(about)) << what << ": " << error;
      for (const ConfigField& now : after) {
        if (now.key != field.key) continue;
        const bool same = field.type == "number" ? ParseNumber(now.Text()) == ParseNumber(text)
                                                 : now.Text() == text;
        EXPECT_TRUE(same) << what << ": " << field.key << "=" << text << " became " << now.Text();
      }
    }
    for (const std::string& text : refused) {
      const std::string error = UserErrorText([&] { apply(field.key + "=" + text); });
      EXPECT_TRUE(error.starts_with(about))
          << what << ": " << field.key << "=" << text << ": " << error;
      EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    }
  }
}

}  // namespace msrl::testing
