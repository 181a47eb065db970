// An actor in C++, called from this program, and from Python:
//   hello_actor               makes a counter on the cluster, and counts
//   hello_actor NAME          calls add() of the actor of that name, in whatever language it is
//   cpp_actor_class("hello_actor", "Counter").remote(5)          in Python; see docs/guides/cpp.md
#include <troupe/troupe.h>

#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

class Counter {
 public:
  explicit Counter(int start) : total_(start) {}

  int Add(int amount) {
    if (amount < 0) throw std::invalid_argument("a counter does not count backwards");
    return total_ += amount;
  }
  int Total() const { return total_; }

 private:
  int total_;
};
TROUPE_ACTOR(Counter(int), &Counter::Add, &Counter::Total);

namespace {

void CountHere() {
  const auto counter = troupe::Create<Counter>({.num_cpus = 1}, 5);
  std::vector<troupe::Ref<int>> totals;
  for (int i = 1; i <= 3; ++i) totals.push_back(counter.Call<&Counter::Add>(i));
  for (const int total : troupe::Get(totals)) std::cout << "total " << total << "\n";
  try {
    counter.Call<&Counter::Add>(-1).Get();
  } catch (const troupe::TaskError& error) {
    std::cout << "refused, " << error.type() << "\n";
  }
}

void CallOther(const std::string& name) {
  const troupe::AnyActor other = troupe::GetActor(name);
  std::cout << "answer "
            << other.Call("add", 2, std::map<std::string, double>{{"x", 0.5}}).Get<double>()
            << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    troupe::Init();  // in an actor's process it serves the actor, and does not return
    if (argc > 1) {
      CallOther(argv[1]);
    } else {
      CountHere();
    }
  } catch (const troupe::Error& error) {
    std::cerr << "hello_actor: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
