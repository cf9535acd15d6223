// Settings of agents and options of environments, as JSON.
#ifndef MSRL_CLI_FIELDS_JSON_H_
#define MSRL_CLI_FIELDS_JSON_H_

#include <vector>

#include "msrl/cli/json_output.h"
#include "msrl/core/config.h"

namespace msrl::cli {

// What each is, and what may stand there.
inline Json FieldsJson(const std::vector<ConfigField>& fields) {
  Json json = Json::array();
  for (const ConfigField& field : fields) {
    json.push_back({{"key", field.key},
                    {"value", Json::parse(field.value)},
                    {"accepts", field.Accepts()},
                    {"meaning", field.meaning}});
  }
  return json;
}

}  // namespace msrl::cli

#endif  // MSRL_CLI_FIELDS_JSON_H_
