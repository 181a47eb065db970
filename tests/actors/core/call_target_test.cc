// Method: names as callers write them, and names that are none.
#include "actors/core/call/call_target.h"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

TEST(CallTarget, APlainMethodGivesOneAnswer) {
  const auto target = ParseCallTarget("step");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->method, "step");
  EXPECT_EQ(target->returns, 1u);
  EXPECT_FALSE(target->streams);
  EXPECT_EQ(target->group, "");
}

TEST(CallTarget, ReadsWhatIsAskedFor) {
  const auto several = ParseCallTarget("step;returns=3;group=io");
  ASSERT_TRUE(several);
  EXPECT_EQ(several->method, "step");
  EXPECT_EQ(several->returns, 3u);
  EXPECT_EQ(several->group, "io");
  const auto stream = ParseCallTarget("step;returns=*;ahead=16");
  ASSERT_TRUE(stream);
  EXPECT_TRUE(stream->streams);
  EXPECT_EQ(stream->ahead, 16u);
  EXPECT_FALSE(stream->keeps_tensors);
  EXPECT_EQ(ParseCallTarget("step;returns=0")->returns, 0u);
  const auto keeping = ParseCallTarget("step;returns=2;tensors=1;group=io");
  ASSERT_TRUE(keeping);
  EXPECT_TRUE(keeping->keeps_tensors);
  EXPECT_EQ(keeping->group, "io");
}

TEST(CallTarget, AGroupsNameGoesToTheEnd) {
  EXPECT_EQ(ParseCallTarget("step;group=a;b=c")->group, "a;b=c");
}

TEST(CallTarget, RefusesWhatIsNone) {
  for (const char* name :
       {"", ";returns=2", "step;", "step;returns", "step;returns=", "step;returns=-1",
        "step;returns=2x", "step;returns=65537", "step;returns=99999999999", "step;ahead=0",
        "step;tensors=0", "step;tensors", "step;group=", "step;colour=red"}) {
    EXPECT_FALSE(ParseCallTarget(name)) << name;
  }
}

}  // namespace
}  // namespace troupe::actors
