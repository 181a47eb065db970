// Method: environments against a node's own, and tables of zygotes asked for choices in turn.
#include "worker/core/zygote_table.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

#include "worker/core/read_at_import.h"

namespace troupe::worker {
namespace {

using How = ZygoteTable::How;

wire::EnvVar Variable(const std::string& name, const std::string& value) {
  wire::EnvVar each;
  each.name = name;
  each.value = value;
  return each;
}

ZygoteKey Of(std::vector<std::string> preimport, std::vector<wire::EnvVar> env = {},
             const std::vector<wire::EnvVar>& base = {}) {
  wire::RuntimeEnvironment environment;
  environment.preimport = std::move(preimport);
  environment.env = std::move(env);
  environment.import_path = {"/project"};
  return ZygoteKeyOf(base, environment);
}

TEST(ZygoteKeys, OnlyWhatDiffersFromTheNodesOwnCounts) {
  EXPECT_TRUE(Of({}).IsDefault());
  EXPECT_TRUE(Of({}, {Variable("MODE", "fast")}).IsDefault()) << "no library reads it";
  EXPECT_TRUE(Of({}, {Variable("TORCH_LOGS", "x")}, {Variable("TORCH_LOGS", "x")}).IsDefault());
  EXPECT_EQ(Of({}, {Variable("TORCH_LOGS", "y")}, {Variable("TORCH_LOGS", "x")}).Describe(),
            "TORCH_LOGS");
  EXPECT_TRUE(
      Of({}, {Variable("OMP_NUM_THREADS", "4"), Variable("TORCH_NCCL_TRACE_BUFFER_SIZE", "1")})
          .IsDefault());
}

TEST(ZygoteKeys, ALibrarysVariablesCountWhereItMayHaveBeenLoaded) {
  EXPECT_TRUE(Of({}, {Variable("HF_HOME", "/cache")}).IsDefault());
  EXPECT_EQ(Of({"transformers"}, {Variable("HF_HOME", "/cache")}).Describe(),
            "transformers and HF_HOME");
  EXPECT_FALSE(IsReadAtImport("HF_TOKEN", true));
  EXPECT_TRUE(IsReadAtImport("OMP_SCHEDULE", false));
  EXPECT_FALSE(IsReadAtImport("KMP_INIT_AT_FORK", false)) << "sklearn sets it where it is loaded";
  EXPECT_TRUE(IsReadAtImport("PYTHONHASHSEED", false));
}

TEST(ZygoteKeys, EachDifferenceMakesAnother) {
  const ZygoteKey one = Of({"a", "b"});
  EXPECT_EQ(one.Text(), Of({"a", "b"}).Text());
  EXPECT_NE(one.Text(), Of({"b", "a"}).Text()) << "the order of imports may matter";
  EXPECT_NE(one.Text(), Of({"ab"}).Text());
  EXPECT_NE(one.Text(), Of({"a", "b"}, {Variable("HF_HOME", "/x")}).Text());
  ZygoteKey elsewhere = one;
  elsewhere.import_path = {"/other"};
  EXPECT_NE(one.Text(), elsewhere.Text());
}

TEST(ZygoteKeys, WhatProvidesTheModulesCountsAndNothingElseDoes) {
  wire::RuntimeEnvironment environment;
  environment.preimport = {"lightning"};
  environment.import_path = {"/project"};
  environment.working_directory = "/project";
  environment.preimport_installed = true;
  ZygoteKey ahead;
  ahead.preimport = environment.preimport;
  EXPECT_EQ(ZygoteKeyOf({}, environment).Text(), ahead.Text())
      << "as one that the node has made before anybody asked";
  environment.preimport_installed = false;
  EXPECT_NE(ZygoteKeyOf({}, environment).Text(), ahead.Text());
  const std::string without = ZygoteKeyOf({}, environment).Text();
  environment.setup = "{\"pip\": [\"einops\"]}";
  EXPECT_NE(ZygoteKeyOf({}, environment).Text(), without);
  environment.preimport.clear();
  EXPECT_TRUE(ZygoteKeyOf({}, environment).IsDefault()) << "requirements alone are executed";
}

TEST(ZygoteTables, NamedModulesAreWaitedForAtTheFirstUse) {
  ZygoteTable table;
  const ZygoteKey key = Of({"lightning"});
  ZygoteTable::Choice choice = table.Choose(key, {});
  EXPECT_TRUE(choice.start);
  EXPECT_EQ(choice.how, How::kWait);
  choice = table.Choose(key, {});
  EXPECT_FALSE(choice.start) << "one is on its way";
  EXPECT_EQ(choice.how, How::kWait);
  table.OnReady(key.Text(), "");
  EXPECT_EQ(table.Choose(key, {}).how, How::kFork);
}

TEST(ZygoteTables, ValuesAloneAreExecutedUntilAZygoteIsReady) {
  ZygoteTable table;
  const ZygoteKey key = Of({}, {Variable("PYTHONHASHSEED", "1")});
  EXPECT_FALSE(table.Choose(key, {}).start) << "most come once";
  const ZygoteTable::Choice again = table.Choose(key, {});
  EXPECT_TRUE(again.start);
  EXPECT_EQ(again.how, How::kExecute);
  EXPECT_EQ(table.Choose(key, {}).how, How::kExecute);
  table.OnReady(key.Text(), "");
  EXPECT_EQ(table.Choose(key, {}).how, How::kFork);
}

TEST(ZygoteTables, AFailedProbeFallsBackToExecutingAndIsNotTriedAgain) {
  ZygoteTable table;
  const ZygoteKey key = Of({"starts_threads"});
  EXPECT_TRUE(table.Choose(key, {}).start);
  table.OnReady(key.Text(), "2 threads after the imports");
  const ZygoteTable::Choice choice = table.Choose(key, {});
  EXPECT_EQ(choice.how, How::kExecute);
  EXPECT_EQ(choice.problem, "2 threads after the imports");
  EXPECT_FALSE(choice.start);
}

TEST(ZygoteTables, WhatIsFetchedByAProcessIsThereForTheNextZygote) {
  ZygoteTable table;
  const ZygoteKey key = Of({"module_of_a_package"});
  EXPECT_TRUE(table.Choose(key, {}).start);
  table.OnReady(key.Text(), "the package was not on this host yet", true);
  EXPECT_EQ(table.Choose(key, {}).how, How::kExecute) << "those that waited for it, all of them";
  EXPECT_EQ(table.Choose(key, {}).how, How::kExecute);
  table.OnSetUp(key.Text());
  EXPECT_TRUE(table.Choose(key, {}).start);
  table.OnReady(key.Text(), "ModuleNotFoundError");
  table.OnSetUp(key.Text());
  EXPECT_FALSE(table.Choose(key, {}).start) << "that is no matter of time";
}

TEST(ZygoteTables, TheLeastRecentlyUsedThatNobodyWaitsForEnds) {
  ZygoteTable table(2);
  const ZygoteKey a = Of({"a"}), b = Of({"b"}), c = Of({"c"}), d = Of({"d"});
  EXPECT_EQ(table.Choose(a, {}).end, "");
  table.OnReady(a.Text(), "");
  EXPECT_EQ(table.Choose(b, {}).end, "");
  table.OnReady(b.Text(), "");
  table.Choose(a, {});
  EXPECT_EQ(table.Choose(c, {}).end, b.Text());
  EXPECT_EQ(table.Choose(d, {a.Text()}).end, c.Text()) << "somebody waits for the older one";
  const ZygoteTable::Choice none = table.Choose(b, {a.Text(), d.Text()});
  EXPECT_EQ(none.how, How::kExecute) << "all are waited for";
  EXPECT_FALSE(none.start);
  EXPECT_NE(none.problem, "");
  EXPECT_EQ(table.Choose(b, {a.Text()}).end, d.Text()) << "it is had once there is room";
}

TEST(ZygoteTables, WhatWasSeenOnceIsForgottenInTime) {
  ZygoteTable table(4, 8);
  const auto numbered = [](int number) {
    return Of({}, {Variable("PYTHONHASHSEED", std::to_string(number))});
  };
  const ZygoteKey kept = Of({"a"});
  table.Choose(kept, {});
  table.OnReady(kept.Text(), "");
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(table.Choose(numbered(i), {}).start);
  EXPECT_FALSE(table.Choose(numbered(0), {}).start) << "it counts as the first";
  EXPECT_EQ(table.Choose(kept, {}).how, How::kFork) << "what lives is not forgotten";
}

}  // namespace
}  // namespace troupe::worker
