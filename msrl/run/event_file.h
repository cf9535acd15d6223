// TensorBoard's event files: TFRecord frames around protobuf messages, scalars only.
#ifndef MSRL_RUN_EVENT_FILE_H_
#define MSRL_RUN_EVENT_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace msrl {

// The record that begins every file. Wall times are seconds since 1970.
std::string EncodeEventHeader(double wall_time);

// One record: all scalars of one step. Its length does not depend on the wall time.
std::string EncodeScalars(double wall_time, std::int64_t step,
                          std::span<const std::pair<std::string, double>> scalars);

}  // namespace msrl

#endif  // MSRL_RUN_EVENT_FILE_H_
