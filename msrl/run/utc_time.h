#ifndef MSRL_RUN_UTC_TIME_H_
#define MSRL_RUN_UTC_TIME_H_

#include <string>

namespace msrl {

// Now, as in 2026-11-16T08:21:31Z.
std::string UtcNow();

}  // namespace msrl

#endif  // MSRL_RUN_UTC_TIME_H_
