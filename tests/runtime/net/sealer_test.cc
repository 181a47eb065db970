// Method: what was sealed is opened, changed byte by byte, and opened with another key.
#include "runtime/net/sealer.h"

#include <gtest/gtest.h>

#include "runtime/net/authority.h"

namespace troupe::net {
namespace {

Sealer WithKey(char byte) { return Sealer(Secret(std::string(32, byte))); }

TEST(Sealer, OpensWhatItSealedAndNothingElse) {
  for (const std::string plain :
       {std::string(), std::string("AWS_SECRET_ACCESS_KEY=x"), std::string(100000, 'a')}) {
    const auto sealed = WithKey('k').Seal(plain);
    ASSERT_TRUE(sealed.ok()) << sealed.status();
    const auto opened = WithKey('k').Open(*sealed);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(*opened, plain);
    EXPECT_FALSE(WithKey('l').Open(*sealed).ok());
  }
}

TEST(Sealer, SaysNothingOfWhatIsInItAndSeesEveryChange) {
  const auto sealed = WithKey('k').Seal("a credential");
  ASSERT_TRUE(sealed.ok());
  EXPECT_EQ(sealed->find("credential"), std::string::npos);
  EXPECT_NE(*sealed, *WithKey('k').Seal("a credential"));
  for (std::size_t at = 0; at < sealed->size(); ++at) {
    std::string changed = *sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(WithKey('k').Open(changed).ok()) << at;
    EXPECT_FALSE(WithKey('k').Open(sealed->substr(0, at)).ok()) << at;
  }
}

TEST(Sealer, KeysOfAnAuthorityDifferByPurposeAndAuthority) {
  const auto one = Authority::FromSeed(std::string(32, 'a'), 1'700'000'000'000'000),
             other = Authority::FromSeed(std::string(32, 'b'), 1'700'000'000'000'000);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->Derived("x").Reveal(), one->Derived("x").Reveal());
  EXPECT_EQ(one->Derived("x").Reveal().size(), 32u);
  EXPECT_NE(one->Derived("x").Reveal(), one->Derived("y").Reveal());
  EXPECT_NE(one->Derived("x").Reveal(), other->Derived("x").Reveal());
}

}  // namespace
}  // namespace troupe::net
