// Method: an authority in memory and in a temporary folder issues certificates at chosen times;
// what they say and what is concluded from them is compared with what was asked for.
#include "runtime/net/certificate.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "runtime/net/files.h"
#include "tests/runtime/net/test_cluster.h"

namespace troupe::net {
namespace {

constexpr std::uint64_t kNow = 1'800'000'000ull * kSecondUs;

TEST(Certificate, ARequestIsAnsweredWithWhatTheIssuerSays) {
  const Authority authority = *Authority::Create(kNow);
  const PrivateKey key = PrivateKey::Generate();
  const NodeId id(11, 22);
  const auto pem = authority.Issue(*key.SigningRequest(), wire::Role::kWorker, id, kNow);
  ASSERT_TRUE(pem.ok()) << pem.status();
  const Certificate certificate = *Certificate::FromPem(*pem);
  const Identity who = *certificate.identity();
  EXPECT_EQ(who.cluster, authority.cluster_id());
  EXPECT_EQ(who.role, wire::Role::kWorker);
  EXPECT_EQ(who.id, id);
  EXPECT_EQ(certificate.KeyHash(), key.PublicHash());
  EXPECT_EQ(certificate.validity().not_before_us, kNow - kHourUs);
  EXPECT_EQ(certificate.validity().not_after_us, kNow + 7 * kDayUs);
}

TEST(Certificate, NodesLiveAWeekOthersADay) {
  EXPECT_EQ(LifetimeUs(wire::Role::kWorker), 7 * kDayUs);
  EXPECT_EQ(LifetimeUs(wire::Role::kClient), kDayUs);
  EXPECT_EQ(LifetimeUs(wire::Role::kProcess), kDayUs);
}

TEST(Certificate, ABadRequestIsRefused) {
  const Authority authority = *Authority::Create(kNow);
  std::string request = *PrivateKey::Generate().SigningRequest();
  EXPECT_FALSE(authority.Issue("nonsense", wire::Role::kWorker, NodeId(1, 1), kNow).ok());
  request[request.size() - 1] = static_cast<char>(request.back() ^ 1);  // damages its signature
  const auto issued = authority.Issue(request, wire::Role::kWorker, NodeId(1, 1), kNow);
  EXPECT_EQ(ErrorCodeOf(issued.status()), ErrorCode::kInvalid);
}

TEST(Certificate, IdentitiesAreReadBackExactlyOrRefused) {
  Identity who;
  who.cluster = ClusterId(1, 2);
  who.role = wire::Role::kObserver;
  who.id = NodeId(3, 4);
  EXPECT_EQ(*ParseIdentity(FormatIdentity(who)), who);
  for (const char* text :
       {"", "troupe://", "http://x/worker/y", "troupe://1/worker/2",
        "troupe://00000000000000010000000000000002/none/00000000000000030000000000000004",
        "troupe://00000000000000010000000000000002/king/00000000000000030000000000000004",
        "troupe://00000000000000010000000000000002/worker/00000000000000030000000000000004/x"}) {
    EXPECT_FALSE(ParseIdentity(text).ok()) << text;
  }
}

TEST(Certificate, RenewalIsDueAtTwoThirds) {
  Validity validity;
  validity.not_before_us = kNow - kBackdateUs;
  validity.not_after_us = kNow + 9 * kDayUs;
  EXPECT_FALSE(RenewalDue(validity, kNow + 6 * kDayUs - 1));
  EXPECT_TRUE(RenewalDue(validity, kNow + 6 * kDayUs));
  EXPECT_FALSE(RenewalDue(validity, kNow - kBackdateUs));
  EXPECT_TRUE(RenewalDue(validity, kNow - kBackdateUs - 1))
      << "the clock was set back since it was issued";
}

TEST(Certificate, AClockProblemIsNamedWithItsSize) {
  Validity validity;
  validity.not_before_us = kNow - kHourUs;
  validity.not_after_us = kNow + kDayUs;
  EXPECT_FALSE(ValidityProblem(validity, kNow));
  const auto early = ValidityProblem(validity, kNow - 3 * kHourUs);
  ASSERT_TRUE(early);
  EXPECT_NE(early->find("one of the two clocks is wrong by at least 3 h"), std::string::npos)
      << *early;
  const auto late = ValidityProblem(validity, kNow + 3 * kDayUs);
  ASSERT_TRUE(late);
  EXPECT_NE(late->find("expired 2 days ago"), std::string::npos) << *late;
  EXPECT_FALSE(SkewOfFreshCertificate(validity, kNow + 30 * kSecondUs));
  EXPECT_NE(SkewOfFreshCertificate(validity, kNow - 10 * 60 * kSecondUs)
                ->find("clock is 10 min behind the head's"),
            std::string::npos);
}

TEST(Authority, IsMadeOnceAndKeptWithItsKeyPrivate) {
  const TempFolder folder;
  const Authority made = *Authority::LoadOrCreate(folder.path(), kNow);
  struct stat info{};
  ASSERT_EQ(stat((folder.path() + "/ca.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const Authority again = *Authority::LoadOrCreate(folder.path(), kNow + kDayUs);
  EXPECT_EQ(again.cluster_id(), made.cluster_id());
  EXPECT_EQ(again.certificate().Pem(), made.certificate().Pem());
}

TEST(Authority, ACrashBetweenKeyAndCertificateIsMended) {
  const TempFolder folder;
  const Authority made = *Authority::LoadOrCreate(folder.path(), kNow);
  std::filesystem::remove(folder.path() + "/ca.crt");
  EXPECT_EQ(Authority::LoadOrCreate(folder.path(), kNow)->cluster_id(), made.cluster_id());
}

TEST(Authority, AKeyOthersCanReadIsRefusedWithTheRemedy) {
  const TempFolder folder;
  ASSERT_TRUE(Authority::LoadOrCreate(folder.path(), kNow).ok());
  chmod((folder.path() + "/ca.key").c_str(), 0644);
  const Status refused = Authority::LoadOrCreate(folder.path(), kNow).status();
  EXPECT_NE(MessageOf(refused).find("chmod 600"), std::string::npos) << refused;
}

TEST(Authority, ACertificateOfAnotherKeyIsRefused) {
  const TempFolder folder, other;
  ASSERT_TRUE(Authority::LoadOrCreate(folder.path(), kNow).ok());
  ASSERT_TRUE(Authority::LoadOrCreate(other.path(), kNow).ok());
  std::filesystem::copy_file(other.path() + "/ca.crt", folder.path() + "/ca.crt",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(ErrorCodeOf(Authority::LoadOrCreate(folder.path(), kNow).status()),
            ErrorCode::kInvalid);
}

TEST(Authority, FromTheSameSeedIsTheSameCluster) {
  const std::string seed(32, 's');
  EXPECT_EQ(Authority::FromSeed(seed, kNow)->cluster_id(),
            Authority::FromSeed(seed, kNow + 1)->cluster_id());
  EXPECT_FALSE(Authority::FromSeed("short", kNow).ok());
}

TEST(Credentials, AreKeptAndCheckedOnLoading) {
  const TempFolder folder;
  TestCluster cluster;
  EXPECT_EQ(ErrorCodeOf(LoadCredentials(folder.path(), "node").status()), ErrorCode::kNotFound);
  const Credentials node = cluster.Issue(wire::Role::kWorker);
  ASSERT_TRUE(StoreCredentials(folder.path(), "node", node).ok());
  const auto loaded = LoadCredentials(folder.path(), "node");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->certificate.Pem(), node.certificate.Pem());
  EXPECT_EQ(loaded->key.PublicHash(), node.key.PublicHash());

  // A crash in the middle of a renewal leaves a new key beside the old certificate.
  const Credentials renewed = cluster.Issue(wire::Role::kWorker);
  ASSERT_TRUE(ReplaceFile(folder.path() + "/node.key", renewed.key.Pem().Reveal(), 0600).ok());
  EXPECT_EQ(ErrorCodeOf(LoadCredentials(folder.path(), "node").status()), ErrorCode::kInvalid);
}

TEST(Credentials, OfTwoClustersDoNotMix) {
  TestCluster here, there;
  const Credentials node = there.Issue(wire::Role::kWorker);
  const auto mixed =
      MakeCredentials(node.key, node.certificate.Pem(), here.authority.certificate().Pem());
  EXPECT_EQ(ErrorCodeOf(mixed.status()), ErrorCode::kWrongCluster);
}

TEST(Files, CreateNeverOverwritesAndReadIsBounded) {
  const TempFolder folder;
  const std::string path = folder.path() + "/secret";
  ASSERT_TRUE(CreateSecretFile(path, Secret("one")).ok());
  EXPECT_EQ(ErrorCodeOf(CreateSecretFile(path, Secret("two"))), ErrorCode::kAlreadyExists);
  EXPECT_EQ(ReadSecretFile(path)->Reveal(), "one");
  std::ofstream(folder.path() + "/large") << std::string(100'000, 'x');
  EXPECT_EQ(ErrorCodeOf(ReadSmallFile(folder.path() + "/large").status()), ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace troupe::net
