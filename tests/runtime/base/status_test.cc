// Method: a code given to MakeError is the code read back, whatever the status went through.
#include "runtime/base/status.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(StatusCodes, SurviveACopy) {
  for (int i = 1; i <= static_cast<int>(ErrorCode::kAlreadyExists); ++i) {
    const Status made = MakeError(static_cast<ErrorCode>(i), "text");
    const Status copy = made;
    EXPECT_FALSE(copy.ok());
    EXPECT_EQ(ErrorCodeOf(copy), static_cast<ErrorCode>(i));
    EXPECT_EQ(MessageOf(copy), "text");
  }
}

TEST(StatusCodes, ForeignStatusGetsTheNearestCode) {
  EXPECT_EQ(ErrorCodeOf(absl::DeadlineExceededError("x")), ErrorCode::kTimeout);
  EXPECT_EQ(ErrorCodeOf(absl::OkStatus()), ErrorCode::kNone);
}

StatusOr<int> Half(int n) {
  if (n % 2 != 0) return MakeError(ErrorCode::kInvalid, "odd");
  return n / 2;
}
StatusOr<int> Quarter(int n) {
  TROUPE_ASSIGN(const int half, Half(n));
  return Half(half);
}

TEST(StatusMacros, AssignReturnsTheError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(ErrorCodeOf(Quarter(3).status()), ErrorCode::kInvalid);
  EXPECT_EQ(ErrorCodeOf(Quarter(6).status()), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace troupe
