// Counts heap allocations of the whole process, so that tests can show that a hot path makes none.
#ifndef MSRL_TESTING_ALLOCATION_COUNTER_H_
#define MSRL_TESTING_ALLOCATION_COUNTER_H_

#include <cstdint>

namespace msrl::testing {

// malloc, calloc, realloc and operator new since the start of the process.
std::int64_t AllocationCount();

}  // namespace msrl::testing

#endif  // MSRL_TESTING_ALLOCATION_COUNTER_H_
