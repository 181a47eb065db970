// Method: capture the sink and read the line back as text.
#include "runtime/base/log.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

TEST(Log, OneJsonObjectALine) {
  std::vector<std::string> lines;
  SetLogSink([&](LogLevel, const std::string& line) { lines.push_back(line); });
  SetLogSource("head");
  Log(LogLevel::kInfo, "node \"joined\"", {{"name", "a\nb"}, {"cpus", 4}});
  Log(LogLevel::kDebug, "below the level");
  SetLogSink(nullptr);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("\"event\":\"node \\\"joined\\\"\",\"name\":\"a\\nb\",\"cpus\":4}\n"),
            std::string::npos)
      << lines[0];
}

TEST(Log, ControlCharactersAreEscaped) { EXPECT_EQ(JsonEscape("\x1b[31m"), "\\u001b[31m"); }

}  // namespace
}  // namespace troupe
