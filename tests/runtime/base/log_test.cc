// Method: capture the sink and read the line back as text; the size of a log by a real file in the
// place of descriptor 2.
#include "runtime/base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "runtime/base/log_file.h"
#include "runtime/base/unique_fd.h"

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

/// A file that is descriptor 2 for as long as the object lives; what it holds then.
class OwnLog {
 public:
  explicit OwnLog(int flags) : saved_(dup(2)), path_(MakePath()) {
    const UniqueFd file(open(path_.c_str(), O_WRONLY | flags));
    dup2(file.get(), 2);
  }
  ~OwnLog() {
    dup2(saved_.get(), 2);
    unlink(path_.c_str());
  }
  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

 private:
  static std::string MakePath() {
    char path[] = "/tmp/troupe-log-XXXXXX";
    close(mkstemp(path));
    return path;
  }
  const UniqueFd saved_;
  const std::string path_;
};

void LogKibibytes(int count) {
  for (int i = 0; i < count; ++i) Log(LogLevel::kInfo, std::string(1024, 'x'), {{"line", i}});
}

TEST(Log, AFileOverItsSizeLosesItsOlderHalfAndSaysSo) {
  const OwnLog log(O_APPEND);
  SetLogBytesMax(kLogBytesLeast);
  LogKibibytes(64);
  SetLogBytesMax(0);
  const std::string text = log.Text();
  EXPECT_LE(text.size(), kLogBytesLeast + 2048);
  EXPECT_NE(text.find("lost its older half\",\"bytes\":"), std::string::npos);
  EXPECT_EQ(text.find("\"line\":0}"), std::string::npos) << "the older half";
  EXPECT_NE(text.find("\"line\":63}\n"), std::string::npos) << "the newest line";
}

TEST(Log, WithoutALimitAndWithoutAppendingAFileIsLeftAlone) {
  const OwnLog appending(O_APPEND);
  LogKibibytes(64);
  EXPECT_GT(appending.Text().size(), 64u << 10);
  const OwnLog rewriting(0);  // a cut would leave a hole up to the writer's own place
  SetLogBytesMax(kLogBytesLeast);
  LogKibibytes(64);
  SetLogBytesMax(0);
  EXPECT_GT(rewriting.Text().size(), 64u << 10);
}

TEST(Log, AFileThatCannotBeCutAtItsFrontKeepsItsNewerHalfToo) {
  const UniqueFd file(memfd_create("log", MFD_CLOEXEC));  // as on tmpfs
  ASSERT_TRUE(file.valid());
  std::string text;
  for (int i = 0; i < 8; ++i) text += std::string(4096, static_cast<char>('a' + i));
  ASSERT_EQ(write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(HalveLogFile(file.get(), text.size()), 0u) << "it is within its size";
  const std::uint64_t dropped = HalveLogFile(file.get(), 16384);
  EXPECT_EQ(dropped, 6u * 4096);
  std::string kept(text.size(), '\0');
  const ssize_t have = pread(file.get(), kept.data(), kept.size(), 0);
  ASSERT_GE(have, 0);
  kept.resize(static_cast<std::size_t>(have));
  EXPECT_EQ(kept, text.substr(dropped));
}

TEST(Log, ControlCharactersAreEscaped) { EXPECT_EQ(JsonEscape("\x1b[31m"), "\\u001b[31m"); }

}  // namespace
}  // namespace troupe
