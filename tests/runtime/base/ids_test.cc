// Method: every id round-trips through its text; anything that is not exactly that text is refused.
#include "runtime/base/ids.h"

#include <gtest/gtest.h>

#include "runtime/base/random.h"

namespace troupe {
namespace {

TEST(Ids, TextRoundTrips) {
  Prng random(7);
  for (int i = 0; i < 1000; ++i) {
    const NodeId id = NodeId::Random(random);
    EXPECT_EQ(NodeId::FromHex(id.Hex()), id);
    EXPECT_EQ(id.Short(), id.Hex().substr(0, 8));
    EXPECT_FALSE(id.IsNil());
  }
}

TEST(Ids, HexIsBigEndian) { EXPECT_EQ(NodeId(1, 0xab).Hex(), "000000000000000100000000000000ab"); }

TEST(Ids, RefusesWhatIsNotAnId) {
  for (const char* text :
       {"", "12", "0000000000000001000000000000000G", "0000000000000001000000000000000A",
        "000000000000000100000000000000000"}) {
    EXPECT_EQ(NodeId::FromHex(text), std::nullopt) << text;
  }
}

TEST(Ids, OrderIsByHighThenLow) {
  EXPECT_LT(NodeId(1, 9), NodeId(2, 0));
  EXPECT_LT(NodeId(1, 1), NodeId(1, 2));
}

}  // namespace
}  // namespace troupe
