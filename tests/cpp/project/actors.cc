#include "actors.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <new>
#include <stdexcept>

TROUPE_ACTOR(Counter(int), &Counter::Add, &Counter::Total, &Counter::Pid, &Counter::Where,
             &Counter::Variable, &Counter::Leave, &Counter::Crash, &Counter::Throw);
TROUPE_ACTOR(Echo(), &Echo::Same, &Echo::Moved, &Echo::Sums, &Echo::Large, &Echo::SizeOf,
             &Echo::Relay);
TROUPE_ACTOR(Member(double), &Member::Summed, &Member::Gathered, &Member::FromFirst, &Member::Rank,
             &Member::Pid);
TROUPE_ACTOR(Nest(), &Nest::Hatch);
TROUPE_ACTOR(Broken(const std::string&), &Broken::Never);

int Counter::Pid() const { return ::getpid(); }

std::string Counter::Where() const {
  char path[4096] = "";
  return ::getcwd(path, sizeof path) != nullptr ? path : "";
}

std::string Counter::Variable(const std::string& name) const {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? value : "";
}

void Counter::Crash() {
  std::cerr << "the counter is about to abort\n";
  std::abort();
}

void Counter::Throw(const std::string& what) {
  if (what == "out_of_range") throw std::out_of_range("there are three shelves");
  if (what == "invalid_argument") throw std::invalid_argument("not a shelf");
  if (what == "bad_alloc") throw std::bad_alloc();
  if (what == "runtime_error") throw std::runtime_error("the shelf fell");
  throw 7;
}

std::map<std::string, double> Echo::Sums(const std::map<std::string, std::vector<double>>& rows) {
  std::map<std::string, double> sums;
  for (const auto& [name, row] : rows) {
    for (const double each : row) sums[name] += each;
  }
  return sums;
}

troupe::Value Echo::Relay(const std::string& name, const std::string& method,
                          const troupe::Value& value) {
  return troupe::GetActor(name).Call(method, value).GetValue();
}

int Nest::Hatch(int start) {
  const auto counter = troupe::Create<Counter>({.num_cpus = 1}, start);
  return counter.Call<&Counter::Add>(1).Get();
}

std::vector<double> Member::Summed(const std::string& group, std::int64_t count) {
  std::vector<double> numbers(static_cast<std::size_t>(count), number_);
  troupe::train::GetGroup(group).AllReduce(std::span<double>(numbers));
  return {numbers.front(), numbers.back()};
}

std::vector<std::int64_t> Member::Gathered(const std::string& group) {
  std::vector<std::int64_t> mine{static_cast<std::int64_t>(number_), -1};
  return troupe::train::GetGroup(group).AllGather(std::span<std::int64_t>(mine));
}

float Member::FromFirst(const std::string& group) {
  troupe::train::Group here = troupe::train::GetGroup(group);
  float number = static_cast<float>(number_);
  here.Broadcast(std::span<float>(&number, 1));
  here.Barrier();
  return number;
}

int Member::Rank(const std::string& group) { return troupe::train::GetGroup(group).rank(); }

int Member::Pid() const { return ::getpid(); }

Broken::Broken(const std::string& how) {
  if (how == "throw") throw std::invalid_argument("it cannot be made");
  if (how == "abort") std::abort();
  if (how == "exit") std::exit(3);
}
