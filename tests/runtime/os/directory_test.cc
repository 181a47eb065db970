// Method: a folder of its own in the temporary directory, with the traps a hostile name would use.
#include "runtime/os/directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace troupe::os {
namespace {

class Directory : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/troupe-os-XXXXXX";
    root_ = mkdtemp(name);
  }
  void TearDown() override { RemoveTree(root_); }
  std::string root_;
};

TEST_F(Directory, MadeWithParentsAndPrivate) {
  const std::string path = root_ + "/a/b/c";
  ASSERT_TRUE(MakePrivateDirectory(path).ok());
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  chmod(path.c_str(), 0755);
  ASSERT_TRUE(MakePrivateDirectory(path).ok());
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

unsigned ModeOf(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST_F(Directory, PF6_MadePrivateWhateverTheUmask) {
  for (const mode_t mask : {mode_t{0}, mode_t{0277}, mode_t{0777}}) {
    const std::string path = root_ + "/umask-" + std::to_string(mask) + "/a";
    const mode_t before = umask(mask);
    EXPECT_TRUE(MakePrivateDirectory(path).ok());
    EXPECT_TRUE(MakeDirectories(path + "/b/c").ok());
    umask(before);
    EXPECT_EQ(ModeOf(path), 0700u);
    EXPECT_EQ(ModeOf(path + "/b"), 0700u);
    EXPECT_EQ(ModeOf(path + "/b/c"), 0700u);
  }
}

TEST_F(Directory, PF1_OneThatOthersCouldHaveFilledIsRefused) {
  const std::string path = root_ + "/shared";
  ASSERT_TRUE(MakePrivateDirectory(path + "/inside").ok());
  chmod(path.c_str(), 0770);
  const Status refused = MakePrivateDirectory(path);
  EXPECT_NE(MessageOf(refused).find("others may write to " + path + " (mode 0770)"),
            std::string::npos)
      << MessageOf(refused);
  EXPECT_FALSE(MakePrivateDirectory(path, IfOpen::kLeave).ok());
  EXPECT_EQ(ModeOf(path), 0770u);
  EXPECT_TRUE(MakePrivateDirectory(path, IfOpen::kCloseAny).ok());
  EXPECT_EQ(ModeOf(path), 0700u);
  chmod(path.c_str(), 0755);
  EXPECT_TRUE(MakePrivateDirectory(path, IfOpen::kLeave).ok());
  EXPECT_EQ(ModeOf(path), 0755u);
  chmod((path + "/inside").c_str(), 0777);
  EXPECT_TRUE(MakePrivateDirectory(path + "/inside").ok()) << "it is empty";
  EXPECT_EQ(ModeOf(path + "/inside"), 0700u);
}

TEST_F(Directory, PF3_TheWayThereMustNotBeOthersToChange) {
  const std::string open_one = root_ + "/open";
  ASSERT_TRUE(MakeDirectories(open_one).ok());
  chmod(open_one.c_str(), 0777);
  const Status refused = MakePrivateDirectory(open_one + "/x");
  EXPECT_NE(MessageOf(refused).find("everybody may write to " + open_one), std::string::npos)
      << MessageOf(refused);
  ASSERT_EQ(symlink("open/../open/x", (root_ + "/link").c_str()), 0);
  EXPECT_FALSE(MakePrivateDirectory(root_ + "/link").ok()) << "also where a link leads";
  chmod(open_one.c_str(), 01777);
  EXPECT_TRUE(MakePrivateDirectory(root_ + "/link").ok());
  EXPECT_EQ(ModeOf(open_one + "/x"), 0700u);
  ASSERT_EQ(symlink("round", (root_ + "/round").c_str()), 0);
  EXPECT_FALSE(MakePrivateDirectory(root_ + "/round").ok());
  if (geteuid() != 0) return;
  ASSERT_EQ(lchown((root_ + "/link").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(MakePrivateDirectory(root_ + "/link").ok()) << "of another user";
  ASSERT_EQ(chown((open_one + "/x").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(MakePrivateDirectory(open_one + "/x").ok());
}

TEST_F(Directory, OpenBeneathNeverLeaves) {
  ASSERT_TRUE(MakeDirectories(root_ + "/logs/x").ok());
  const UniqueFd secret(open((root_ + "/secret").c_str(), O_CREAT | O_WRONLY, 0600));
  const UniqueFd good(open((root_ + "/logs/x/rank-0.out").c_str(), O_CREAT | O_WRONLY, 0600));
  ASSERT_EQ(symlink("../secret", (root_ + "/logs/link").c_str()), 0);
  const auto logs = OpenDirectory(root_ + "/logs");
  ASSERT_TRUE(logs.ok());
  EXPECT_TRUE(OpenBeneath(*logs, "x/rank-0.out", O_RDONLY).ok());
  EXPECT_FALSE(OpenBeneath(*logs, "../secret", O_RDONLY).ok());
  EXPECT_FALSE(OpenBeneath(*logs, root_ + "/secret", O_RDONLY).ok());
  EXPECT_FALSE(OpenBeneath(*logs, "link", O_RDONLY).ok());
  EXPECT_FALSE(OpenBeneath(*logs, "x", O_RDONLY).ok()) << "a folder is not a file";
  EXPECT_EQ(ErrorCodeOf(OpenBeneath(*logs, "x/none", O_RDONLY).status()), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace troupe::os
