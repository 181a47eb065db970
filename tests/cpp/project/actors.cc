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

Broken::Broken(const std::string& how) {
  if (how == "throw") throw std::invalid_argument("it cannot be made");
  if (how == "abort") std::abort();
  if (how == "exit") std::exit(3);
}
