// Method: real files in a folder of their own; limits small enough to be reached.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "runtime/net/digest.h"
#include "runtime/os/directory.h"
#include "runtime/os/memory.h"
#include "worker/blob_store.h"
#include "worker/devices/inventory.h"
#include "worker/log_files.h"
#include "worker/options.h"

namespace troupe::worker {
namespace {

class Stores : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/troupe-stores-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { os::RemoveTree(folder_); }
  std::string folder_;
};

TEST_F(Stores, ABlobArrivesInPiecesAndIsFoundAgain) {
  auto store = *BlobStore::Open(folder_, 1u << 20);
  const std::string bytes = "0123456789";
  const std::string sha = net::Sha256(bytes);
  EXPECT_FALSE(*store->Put(1, sha, 0, 10, "01234"));
  EXPECT_FALSE(store->Has(sha)) << "not visible before it is whole";
  EXPECT_TRUE(*store->Put(1, sha, 5, 10, "56789"));
  EXPECT_EQ(store->Get(sha, 0).bytes, bytes);
  EXPECT_EQ(store->Get(sha, 7).bytes, "789");
  EXPECT_TRUE(*store->Put(2, sha, 0, 10, "01234")) << "it is here already";
  store = *BlobStore::Open(folder_, 1u << 20);
  EXPECT_EQ(store->Get(sha, 0).bytes, bytes) << "also after a restart";
}

TEST_F(Stores, ABlobWhoseFileWasChangedIsGivenUpAndCanComeAnew) {
  auto store = *BlobStore::Open(folder_, 1u << 20);
  const std::string sha = net::Sha256("right");
  const auto overwrite = [&](const char* bytes) {
    const UniqueFd fd(open(store->PathOf(sha).c_str(), O_WRONLY));
    ASSERT_EQ(write(fd.get(), bytes, 5), 5);
  };
  EXPECT_TRUE(*store->Put(1, sha, 0, 5, "right"));
  overwrite("right");
  EXPECT_TRUE(store->Has(sha)) << "written to, and the same";
  overwrite("wrong");
  EXPECT_FALSE(store->Get(sha, 0).found);
  EXPECT_FALSE(store->Has(sha));
  EXPECT_EQ(store->total_bytes(), 0u);
  EXPECT_TRUE(*store->Put(1, sha, 0, 5, "right"));
  EXPECT_EQ(store->Get(sha, 0).bytes, "right");
  store->Pin(sha);
  overwrite("wrong");
  store = *BlobStore::Open(folder_, 1u << 20);
  EXPECT_FALSE(store->Has(sha)) << "also by an earlier life";
}

TEST_F(Stores, WrongBytesOrderOrSizeAreRefused) {
  auto store = *BlobStore::Open(folder_, 1000);
  const std::string sha = net::Sha256("right");
  EXPECT_EQ(ErrorCodeOf(store->Put(1, sha, 0, 5, "wrong").status()), ErrorCode::kInvalid);
  EXPECT_EQ(ErrorCodeOf(store->Put(1, sha, 2, 5, "ght").status()), ErrorCode::kInvalid);
  EXPECT_EQ(ErrorCodeOf(store->Put(1, sha, 0, 2000, "r").status()), ErrorCode::kTooLarge);
  EXPECT_EQ(ErrorCodeOf(store->Put(1, "short", 0, 5, "right").status()), ErrorCode::kInvalid);
  EXPECT_TRUE(*store->Put(1, sha, 0, 5, "right"));
}

TEST_F(Stores, OverTheCapTheLeastRecentlyUsedGoesUnlessPinned) {
  auto store = *BlobStore::Open(folder_, 25);
  const auto put = [&](char c) {
    const std::string bytes(10, c);
    EXPECT_TRUE(*store->Put(1, net::Sha256(bytes), 0, 10, bytes));
    return net::Sha256(bytes);
  };
  const std::string a = put('a');
  const std::string b = put('b');
  store->Pin(a);
  const std::string c = put('c');
  EXPECT_TRUE(store->Has(a));
  EXPECT_FALSE(store->Has(b));
  EXPECT_TRUE(store->Has(c));
}

TEST_F(Stores, OverTheNumberTheLeastRecentlyUsedGoesToo) {
  auto store = *BlobStore::Open(folder_, 1u << 20, 2);
  for (const std::string bytes : {"a", "b", "c"})
    EXPECT_TRUE(*store->Put(1, net::Sha256(bytes), 0, 1, bytes));
  EXPECT_FALSE(store->Has(net::Sha256("a")));
  EXPECT_TRUE(store->Has(net::Sha256("b")));
  EXPECT_TRUE(store->Has(net::Sha256("c")));
}

TEST_F(Stores, ATrimmedLogReportsItsGapAndGoesOn) {
  auto logs = *LogFiles::Open(folder_, 16384);
  const LogPlace place{"launch/epoch-2", "rank-0"};
  const auto files = *logs.Create(place);
  const std::string file = LogFile(place, false);
  const std::string line(4096, 'x');
  for (int i = 0; i < 8; ++i) ASSERT_EQ(write(files.out.get(), line.data(), line.size()), 4096);
  logs.Trim(file, 1);
  ASSERT_EQ(write(files.out.get(), "end\n", 4), 4);
  const LogPiece piece = *logs.Read(file, 0, 0);
  EXPECT_GT(piece.dropped, 0u);
  EXPECT_EQ(piece.next, 8u * 4096 + 4) << "offsets count what was written";
  EXPECT_EQ(piece.text.substr(piece.text.size() - 4), "end\n");
  EXPECT_TRUE(logs.Read(file, piece.next, 0)->text.empty());
  EXPECT_EQ(logs.NewestEpoch("launch"), 2u);
  EXPECT_EQ(ErrorCodeOf(logs.Read("../../etc/passwd", 0, 0).status()), ErrorCode::kInternal);
}

TEST_F(Stores, ALogIsReadFromTheLineThatMayBeAsNewAsAskedFor) {
  auto logs = *LogFiles::Open(folder_, 1u << 20);
  const LogPlace place{"launch/epoch-1", "rank-0"};
  const auto files = *logs.Create(place);
  const std::string file = LogFile(place, false);
  const auto say = [&](const std::string& text) {
    ASSERT_EQ(write(files.out.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  say("old\nhalf");
  logs.Trim(file, 1000);
  say(" a line\nnew\n");
  logs.Trim(file, 2000);
  EXPECT_EQ(*logs.Since(file, 999), 0u);
  EXPECT_EQ(*logs.Since(file, 1000), 4u) << "a line counts by its end";
  EXPECT_EQ(*logs.Since(file, 2000), 20u);
  const std::uint64_t now_us = static_cast<std::uint64_t>(time(nullptr)) * 1'000'000;
  EXPECT_EQ(*logs.Since(file, now_us + 60'000'000), 20u) << "by the file's own time";
  EXPECT_EQ(logs.End(file, 8)->text, "new\n");
  EXPECT_EQ(logs.End(file, 8)->offset, 16u);
  EXPECT_EQ(logs.End(file, 1000)->text, "old\nhalf a line\nnew\n");
  EXPECT_EQ(ErrorCodeOf(logs.End("none", 8).status()), ErrorCode::kNotFound);
}

TEST_F(Stores, TheTailIsTwentyWholeLines) {
  auto logs = *LogFiles::Open(folder_, 1u << 20);
  const LogPlace place{"l", "rank-0"};
  const auto files = *logs.Create(place);
  std::string text;
  for (int i = 0; i < 30; ++i) text += "line " + std::to_string(i) + "\n";
  ASSERT_GT(write(files.err.get(), text.data(), text.size()), 0);
  const std::string tail = logs.Tail(LogFile(place, true));
  EXPECT_EQ(tail.substr(0, 8), "line 10\n");
  EXPECT_EQ(tail.substr(tail.size() - 8), "line 29\n");
}

TEST(Options, ErrorsSayWhatIsWrong) {
  RawOptions raw;
  EXPECT_NE(MessageOf(CheckOptions(raw).status()).find("--head"), std::string::npos);
  raw.head = "127.0.0.1:6400";
  raw.node_dir = "/tmp/n";
  raw.resources = "{\"tape\": 2, \"licence\": 0.5}";
  raw.labels = "zone=a,rack=3";
  raw.num_cpus = 4;
  raw.memory = 2e12;
  const auto options = CheckOptions(raw);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->resources, (Amounts{{kCpu, 4 * kWhole},
                                         {kMemory, 2'000'000'000'000 * kWhole},
                                         {"tape", 2 * kWhole},
                                         {"licence", 5000}}));
  EXPECT_EQ(options->labels[1].value, "3");
  raw.memory = -1;
  const std::uint64_t offered = AmountOf(CheckOptions(raw)->resources, kMemory) / kWhole;
  EXPECT_GT(offered, 0u);
  EXPECT_LE(offered, os::ReadMemory().total_bytes / 10 * 7);
  EXPECT_EQ(offered % (1u << 20), 0u);
  for (const char* bad :
       {"[1]", "{\"a\":}", "{\"a\":-1}", "{\"a\":1} x", "{\"GPU\": 1}", "{\"memory\": 1}"}) {
    raw.resources = bad;
    EXPECT_FALSE(CheckOptions(raw).ok()) << bad;
  }
}

TEST(Options, PreimportIsListsOfModules) {
  const auto lists = ParsePreimports("lightning,transformers;deepspeed");
  ASSERT_TRUE(lists.ok()) << lists.status();
  EXPECT_EQ(*lists,
            (std::vector<std::vector<std::string>>{{"lightning", "transformers"}, {"deepspeed"}}));
  EXPECT_TRUE(ParsePreimports("")->empty());
  for (const char* bad : {",", ";", "a,", "a;", ",a", "a,,b", "a;;b", "a;b;c;d;e"}) {
    EXPECT_FALSE(ParsePreimports(bad).ok()) << bad;
  }
}

TEST(Inventory, AMaskNarrowsAndKeepsItsOrder) {
  Inventory all = Offer({}, 0, 4);
  for (const std::uint32_t id : all.gpu_ids) {
    wire::Device device;
    device.index = id;
    device.uuid = "GPU-" + std::to_string(id);
    all.devices.push_back(device);
  }
  const Inventory some = Narrow(all, "3,GPU-1");
  EXPECT_EQ(some.gpu_ids, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(some.tokens.at(0), "3");
  EXPECT_EQ(some.devices[1].uuid, "GPU-1");
  EXPECT_TRUE(Narrow(all, "").gpu_ids.empty());
  EXPECT_EQ(Narrow(all, "0,9,1").gpu_ids.size(), 1u) << "CUDA stops at the first unknown one";
  const Inventory found = FindDevices(std::nullopt, std::nullopt);
  EXPECT_EQ(found.note.empty(), !found.devices.empty());
  EXPECT_TRUE(FindDevices(std::nullopt, 0).gpu_ids.empty());
  EXPECT_EQ(FindDevices(std::nullopt, 100).gpu_ids.size(), 100u);
}

}  // namespace
}  // namespace troupe::worker
