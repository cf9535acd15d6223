#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // Every property runs 1,000 cases from a fixed seed, so that a failure can be repeated. Set
  // RC_PARAMS to search elsewhere, e.g. RC_PARAMS="max_success=100000 seed=7".
  setenv("RC_PARAMS", "max_success=1000 seed=2605143040", /*overwrite=*/0);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
