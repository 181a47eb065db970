// Actors for the tests, of every kind of value and of every end.
#pragma once

#include <troupe/troupe.h>

#include <map>
#include <string>
#include <vector>

struct Point {
  double x = 0;
  double y = 0;
  TROUPE_FIELDS(x, y)
};

class Counter {
 public:
  explicit Counter(int start) : total_(start) {}
  int Add(int amount) { return total_ += amount; }
  int Total() const { return total_; }
  int Pid() const;
  std::string Where() const;
  std::string Variable(const std::string& name) const;
  void Leave() { troupe::ExitActor(); }
  void Crash();
  void Throw(const std::string& what);

 private:
  int total_;
};

class Echo {
 public:
  troupe::Value Same(const troupe::Value& value) { return value; }
  Point Moved(const Point& point, double by) { return {point.x + by, point.y + by}; }
  std::map<std::string, double> Sums(const std::map<std::string, std::vector<double>>& rows);
  troupe::Bytes Large(std::int64_t bytes) {
    return {std::string(static_cast<std::size_t>(bytes), 'x')};
  }
  std::int64_t SizeOf(const troupe::Bytes& bytes) {
    return static_cast<std::int64_t>(bytes.data.size());
  }
  /// Calls a method of another actor, in whatever language that is.
  troupe::Value Relay(const std::string& name, const std::string& method,
                      const troupe::Value& value);
};

/// Makes actors of its own.
class Nest {
 public:
  int Hatch(int start);
};

/// A member of training groups, with a number of its own.
class Member {
 public:
  explicit Member(double number) : number_(number) {}
  std::vector<double> Summed(const std::string& group, std::int64_t count);
  std::vector<std::int64_t> Gathered(const std::string& group);
  float FromFirst(const std::string& group);
  int Rank(const std::string& group);
  int Pid() const;

 private:
  double number_;
};

/// An actor whose constructor fails as ordered: "throw", "abort", "exit".
class Broken {
 public:
  explicit Broken(const std::string& how);
  int Never() { return 0; }
};
