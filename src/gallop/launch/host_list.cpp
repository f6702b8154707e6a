#include "gallop/launch/host_list.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::launch {

namespace {

constexpr size_t kMostHosts = 100000, kLongestName = 255;

std::optional<int> parse_count(std::string_view text) {
  const auto count = parse_number<int>(text);
  return count && *count >= 0 ? count : std::nullopt;
}

// A recursive-descent parser of a host list.
class HostList {
 public:
  explicit HostList(std::string_view text) : text_(text) {}

  std::vector<std::string> parse() {
    std::vector<std::string> hosts;
    while (true) {
      add(hosts, parse_hosts());
      if (rest_at_ == text_.size()) return hosts;
      expect(',');
    }
  }

 private:
  // One entry: alternating names and brackets, expanded to all combinations.
  std::vector<std::string> parse_hosts() {
    std::vector<std::string> hosts = {take_name()};
    while (rest_at_ < text_.size() && text_[rest_at_] == '[') {
      const std::vector<std::string> numbers = parse_brackets();
      const std::string name = take_name();
      std::vector<std::string> longer;
      for (const std::string& host : hosts) {
        for (const std::string& number : numbers) {
          longer.push_back(fmt::format("{}{}{}", host, number, name));
          if (longer.back().size() > kLongestName) fail();
        }
        require_few(longer.size());
      }
      hosts = std::move(longer);
    }
    if (hosts.front().empty()) fail();
    return hosts;
  }

  std::vector<std::string> parse_brackets() {
    expect('[');
    std::vector<std::string> numbers;
    while (true) {
      add(numbers, parse_range());
      if (rest_at_ == text_.size()) fail();
      if (text_[rest_at_] == ']') break;
      expect(',');
    }
    expect(']');
    return numbers;
  }

  // "07-12" with the number of digits of its first number, or a single number.
  std::vector<std::string> parse_range() {
    const std::string_view first = take_digits();
    if (rest_at_ == text_.size() || text_[rest_at_] != '-') return {std::string(first)};
    expect('-');
    const auto begin = parse_number<int>(first), end = parse_number<int>(take_digits());
    if (!begin || !end || *end < *begin) fail();
    const int count = *end - *begin;
    require_few(static_cast<size_t>(count) + 1);
    std::vector<std::string> numbers;
    for (int i = 0; i <= count; ++i) {
      numbers.push_back(fmt::format("{:0{}}", *begin + i, first.size()));
    }
    return numbers;
  }

  std::string_view take_digits() {
    const size_t begin = rest_at_;
    while (rest_at_ < text_.size() && text_[rest_at_] >= '0' && text_[rest_at_] <= '9') ++rest_at_;
    if (rest_at_ == begin || rest_at_ - begin > kLongestName) fail();
    return text_.substr(begin, rest_at_ - begin);
  }

  std::string take_name() {
    const size_t begin = rest_at_;
    rest_at_ = std::min(text_.find_first_of(",[]", rest_at_), text_.size());
    if (rest_at_ - begin > kLongestName) fail();
    return std::string(text_.substr(begin, rest_at_ - begin));
  }

  void expect(char letter) {
    if (rest_at_ == text_.size() || text_[rest_at_] != letter) fail();
    ++rest_at_;
  }

  void add(std::vector<std::string>& all, const std::vector<std::string>& more) const {
    all.insert(all.end(), more.begin(), more.end());
    require_few(all.size());
  }

  void require_few(size_t hosts) const {
    if (hosts <= kMostHosts) return;
    throw UsageError(fmt::format("host list '{}' has more than {} hosts", printable(text_),
                                 format_count(static_cast<int64_t>(kMostHosts))));
  }

  [[noreturn]] void fail() const {
    throw UsageError(fmt::format(
        "host list '{}' is invalid at character {}; expected a list such as 'login,gpu[07-09,12]'",
        printable(text_), rest_at_ + 1));
  }

  std::string_view text_;
  size_t rest_at_ = 0;
};

}  // namespace

std::vector<std::string> parse_host_list(std::string_view text) { return HostList(text).parse(); }

std::vector<int> parse_tasks_per_node(std::string_view text) {
  const auto fail = [&] {
    return UsageError(fmt::format("invalid tasks per node '{}'; expected a list such as '4(x3),2'",
                                  printable(text)));
  };
  std::vector<int> tasks;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string_view entry = text.substr(begin, end - begin);
    begin = end + 1;
    size_t hosts = 1;
    if (const size_t bracket = entry.find("(x"); bracket != std::string_view::npos) {
      const std::string_view times = entry.substr(bracket + 2);
      const auto number =
          times.empty() ? std::nullopt : parse_count(times.substr(0, times.size() - 1));
      if (!number || times.back() != ')') throw fail();
      hosts = static_cast<size_t>(*number);
      entry = entry.substr(0, bracket);
    }
    const auto number = parse_count(entry);
    if (!number || hosts == 0 || tasks.size() + hosts > kMostHosts) throw fail();
    tasks.insert(tasks.end(), hosts, *number);
  }
  return tasks;
}

}  // namespace gallop::launch
