// Types as values and back, as the public header has them: what travels comes back equal, and what
// does not fit is refused in words that name both sides.
#include <gtest/gtest.h>
#include <troupe/register.h>
#include <troupe/value.h>

#include <string>

namespace shop {

struct Item {
  std::string name;
  double price = 0;
  std::vector<int> sizes;
  TROUPE_FIELDS(name, price, sizes)
};

struct Point {
  int x = 0;
  int y = 0;
};
troupe::Value ToTroupe(const Point& point) {
  return troupe::Value::OfTuple({troupe::Value::Int(point.x), troupe::Value::Int(point.y)});
}
void FromTroupe(const troupe::Value& value, Point& point) {
  std::tie(point.x, point.y) = troupe::FromValue<std::tuple<int, int>>(value);
}

}  // namespace shop

namespace troupe {
namespace {

template <class T>
void ExpectBack(const T& value) {
  EXPECT_TRUE(FromValue<T>(ToValue(value)) == value);
}

template <class T>
std::string Refused(const Value& value) {
  try {
    FromValue<T>(value);
  } catch (const InvalidError& error) {
    return error.what();
  }
  return "";
}

TEST(Values, ComeBackEqual) {
  ExpectBack(true);
  ExpectBack(-3);
  ExpectBack(std::uint64_t{1} << 40);
  ExpectBack(0.25);
  ExpectBack(2.5F);
  ExpectBack(std::string("caf\xc3\xa9"));
  ExpectBack(Bytes{std::string("\0\xff", 2)});
  ExpectBack(std::vector<std::byte>{std::byte{1}, std::byte{2}});
  ExpectBack(std::vector<std::vector<bool>>{{true}, {}});
  ExpectBack(std::array<int, 2>{1, 2});
  ExpectBack(std::map<std::string, double>{{"a", 1}, {"b", 2}});
  ExpectBack(std::unordered_map<int, std::string>{{1, "a"}});
  ExpectBack(std::optional<int>());
  ExpectBack(std::optional<int>(3));
  ExpectBack(std::tuple<int, std::string, double>(1, "a", 0.5));
  ExpectBack(std::pair<int, int>(1, 2));
}

TEST(Values, StructsByTheirFieldsAndByFunctions) {
  const Value item = ToValue(shop::Item{"shoe", 59.5, {38, 39}});
  EXPECT_EQ(item.At("name").AsString(), "shoe");
  const auto back = FromValue<shop::Item>(item);
  EXPECT_EQ(back.price, 59.5);
  EXPECT_EQ(back.sizes, (std::vector<int>{38, 39}));
  const auto point = FromValue<shop::Point>(ToValue(shop::Point{3, 4}));
  EXPECT_EQ(point.x, 3);
  EXPECT_EQ(point.y, 4);
}

TEST(Values, WhatDoesNotFitIsRefusedInWords) {
  EXPECT_EQ(Refused<int>(Value::String("2")), "a value of type str, where an int is expected");
  EXPECT_NE(Refused<std::int8_t>(Value::Int(300)).find("300"), std::string::npos);
  EXPECT_NE(Refused<unsigned>(Value::Int(-1)).find("unsigned"), std::string::npos);
  EXPECT_NE(Refused<int>(Value::Float(2.0)).find("float"), std::string::npos);
  EXPECT_NE((Refused<std::pair<int, int>>(Value::OfList({Value::Int(1)}))).find("1 values"),
            std::string::npos);
  EXPECT_NE(Refused<shop::Item>(Value::OfDict({{Value::String("nam"), Value()}})).find("nam"),
            std::string::npos);
}

TEST(Registered, NamesAreReadFromWhatIsWritten) {
  EXPECT_EQ(ClassNameIn("shop::Counter(int start, double)"), "shop::Counter");
  EXPECT_EQ(ClassNameIn("Counter()"), "Counter");
  EXPECT_EQ(MethodNamesIn("&Counter::Add,  &shop::Counter::Total"),
            (std::vector<std::string>{"Add", "Total"}));
  EXPECT_EQ(MethodNamesIn(""), std::vector<std::string>());
}

}  // namespace
}  // namespace troupe
