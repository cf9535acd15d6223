#include "msrl/sweep/slurm.h"

#include <gtest/gtest.h>

#include "msrl/core/check.h"

namespace msrl {
namespace {

using Indices = std::vector<int>;

TEST(SlurmTest, ArrayIndicesAsSlurmWritesThem) {
  EXPECT_EQ(ParseArrayIndices("4"), (Indices{4}));
  EXPECT_EQ(ParseArrayIndices("0-3,7%2"), (Indices{0, 1, 2, 3, 7}));
  EXPECT_EQ(ParseArrayIndices("0-90:30,7"), (Indices{0, 30, 60, 90, 7}));
  EXPECT_EQ(ParseArrayIndices(""), Indices{});
  for (const char* bad :
       {"x", "3-1", "1-", "-1", "1,x", "0-99999999", "0-9:0", "0-9:", "0,2,4..."}) {
    EXPECT_THROW(ParseArrayIndices(bad), UserError) << bad;
  }
}

TEST(SlurmTest, ReadsTheQueueOfOldAndNewVersions) {
  const auto queue = ParseQueue(R"({"meta": {}, "errors": [], "jobs": [
    {"name": "a", "job_state": "PENDING", "array_task_id": null, "array_task_string": "2-4%2"},
    {"name": "a", "job_state": "RUNNING", "array_task_id": 1, "array_task_string": ""},
    {"name": "a", "job_state": "COMPLETED", "array_task_id": 0, "array_task_string": ""},
    {"name": "a", "job_state": "CANCELLED", "array_task_id": null, "array_task_string": "5-9"},
    {"name": "b", "job_state": ["COMPLETING"], "array_task_id": {"set": true, "number": 6}},
    {"name": "c", "job_state": ["RUNNING"], "array_task_id": {"set": false, "number": 0}}]})",
                                "");
  EXPECT_EQ(queue.at("a").waiting, (Indices{2, 3, 4}));
  EXPECT_EQ(queue.at("a").running, (Indices{1}));
  EXPECT_EQ(queue.at("b").running, (Indices{6}));
  EXPECT_TRUE(queue.at("c").running.empty());
  EXPECT_TRUE(ParseQueue(R"({"jobs": []})", "").empty());
}

TEST(SlurmTest, JobsOfOthersMayBeWhatTheyLike) {
  const auto queue = ParseQueue(R"({"jobs": [
    {"name": "theirs", "job_state": "PENDING", "array_task_string": "0,2,4,8..."},
    {"name": "msrl-1a-3", "job_state": "PENDING", "array_task_string": "0-4:2"}]})",
                                "msrl-1a-");
  ASSERT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.at("msrl-1a-3").waiting, (Indices{0, 2, 4}));
}

TEST(SlurmTest, AnAnswerThatIsNoneIsAnError) {
  for (const char* bad : {"", "slurm_load_jobs error", "{}", R"({"jobs": [{"name": 3}]})"}) {
    EXPECT_THROW(ParseQueue(bad, ""), UserError) << bad;
  }
}

}  // namespace
}  // namespace msrl
