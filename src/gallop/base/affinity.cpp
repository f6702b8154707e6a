#include "gallop/base/affinity.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include "gallop/base/text.h"

namespace gallop {

namespace {

int online() { return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); }

struct Cores {
  cpu_set_t all{};
  bool is_known = sched_getaffinity(0, sizeof(all), &all) == 0;
  std::vector<int> numbers;

  Cores() {
    for (int core = 0; core < (is_known ? CPU_SETSIZE : online()); ++core) {
      if (!is_known || CPU_ISSET(core, &all)) numbers.push_back(core);
    }
  }
};

Cores& cores() {
  static Cores cores;
  return cores;
}

std::string text_in(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// 0 if the file does not exist.
int number_in(const fs::path& file) { return parse_number<int>(text_in(file)).value_or(0); }

// From a list such as "0-15,32-47" for each node.
std::map<int, int> nodes_of_cores(const fs::path& folder) {
  std::map<int, int> nodes;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const auto node = name.starts_with("node") ? parse_number<int>(std::string_view(name).substr(4))
                                               : std::nullopt;
    if (!node) continue;
    std::istringstream list(text_in(entry.path() / "cpulist"));
    for (std::string range; std::getline(list, range, ',');) {
      const size_t dash = range.find('-');
      const auto first = parse_number<int>(std::string_view(range).substr(0, dash));
      const auto last = dash == std::string::npos
                            ? first
                            : parse_number<int>(std::string_view(range).substr(dash + 1));
      if (!first || !last) continue;
      for (int core = *first; core <= *last; ++core) nodes[core] = *node;
    }
  }
  return nodes;
}

}  // namespace

const std::vector<int>& cores_given() { return cores().numbers; }

int cores_online() { return online(); }

std::vector<int> side_by_side(std::vector<int> cores, const fs::path& system) {
  const std::map<int, int> nodes = nodes_of_cores(system / "node");
  std::map<int, std::tuple<int, int, int>> places;
  for (const int core : cores) {
    const fs::path topology = system / "cpu" / ("cpu" + std::to_string(core)) / "topology";
    const auto node = nodes.find(core);
    places[core] = {node != nodes.end() ? node->second : 0,
                    number_in(topology / "physical_package_id"), number_in(topology / "core_id")};
  }
  std::stable_sort(cores.begin(), cores.end(),
                   [&](int a, int b) { return places.at(a) < places.at(b); });
  return cores;
}

int numa_nodes_of(const std::vector<int>& cores, const fs::path& system) {
  const std::map<int, int> nodes = nodes_of_cores(system / "node");
  std::set<int> found;
  for (const int core : cores) {
    const auto node = nodes.find(core);
    if (node != nodes.end()) found.insert(node->second);
  }
  return std::max(1, static_cast<int>(found.size()));
}

std::vector<int> part_of(const std::vector<int>& all, int part, int parts) {
  const auto count = static_cast<int>(all.size());
  if (count < parts) return {};
  const auto place = [&](int number) {
    return all.begin() + static_cast<int64_t>(count) * number / parts;
  };
  std::vector<int> chosen(place(part), place(part + 1));
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

void set_cpu_affinity(const std::vector<int>& numbers) {
  Cores& mine = cores();
  if (!mine.is_known || numbers.empty()) return;
  CPU_ZERO(&mine.all);
  for (const int number : numbers) CPU_SET(number, &mine.all);
  mine.numbers = numbers;
  run_on_all_cores();
}

void run_on_core(int number) {
  if (!cores().is_known) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(number, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

void run_on_all_cores() {
  if (cores().is_known) sched_setaffinity(0, sizeof(cores().all), &cores().all);
}

}  // namespace gallop
