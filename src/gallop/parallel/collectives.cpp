#include "gallop/parallel/collectives.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"

namespace gallop::parallel {

void visit_limits(config::Visitor& visitor, Limits& limits) {
  visitor.field({.name = "start_seconds",
                 .help = "collective timeout during start-up, in seconds",
                 .min = 0,
                 .above_min = true},
                limits.start);
  visitor.field({.name = "step_seconds",
                 .help = "collective timeout within a step, and the longest stall in an evaluation "
                         "or a checkpoint, in seconds",
                 .min = 0,
                 .above_min = true},
                limits.step);
  visitor.field({.name = "other_seconds",
                 .help = "collective timeout within an evaluation or a checkpoint that makes "
                         "progress, in seconds",
                 .min = 0,
                 .above_min = true},
                limits.other);
}

namespace {

class SingleProcessGroup final : public Collectives {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce_async(const at::Tensor&) override {}
  void all_to_all_async(const at::Tensor& output, const at::Tensor& input, c10::IntArrayRef,
                        c10::IntArrayRef) override {
    output.narrow(0, 0, input.numel()).copy_(input);
  }
  void all_gather_async(const at::Tensor&, c10::IntArrayRef) override {}
  void send_async(const at::Tensor&, int) override { throw_alone(); }
  void recv_async(const at::Tensor&, int) override { throw_alone(); }
  void wait(const at::Tensor&) override {}
  void broadcast(const at::Tensor&) override {}
  void begin(Section, int64_t) override {}
  void set_limits(const Limits&) override {}
  Limits limits() const override { return {}; }

 protected:
  std::unique_ptr<Collectives> make_subgroup(const std::vector<int>&, const std::string&) override {
    return std::make_unique<SingleProcessGroup>();
  }

 private:
  [[noreturn]] static void throw_alone() {
    throw InternalError("collectives: a single process has no other one to send to");
  }
};

}  // namespace

Collectives::~Collectives() {
  if (whole_ != nullptr) whole_->subgroups_.erase(name_);
}

std::unique_ptr<Collectives> Collectives::subgroup(const std::vector<int>& ranks,
                                                   const std::string& name) {
  std::unique_ptr<Collectives> group = make_subgroup(ranks, name);
  const int number = ++made_[name];
  group->name_ = number == 1 ? name : fmt::format("{}.{}", name, number);
  group->whole_ = this;
  subgroups_.emplace(group->name_, group.get());
  return group;
}

Collectives& Collectives::group(const std::string& name) {
  if (name == name_) return *this;
  const auto found = subgroups_.find(name);
  if (found == subgroups_.end()) throw InternalError("collectives: no group " + name);
  return *found->second;
}

std::unique_ptr<Collectives> single_process_group() {
  return std::make_unique<SingleProcessGroup>();
}

std::vector<double> sum_over_all(Collectives& collectives, const std::vector<double>& numbers) {
  if (numbers.empty()) return {};
  const at::Tensor sums = at::empty({static_cast<int64_t>(numbers.size())}, at::kDouble);
  auto* const data = sums.mutable_data_ptr<double>();
  std::copy(numbers.begin(), numbers.end(), data);
  collectives.all_reduce_async(sums);
  collectives.wait(sums);
  return {data, data + numbers.size()};
}

std::vector<uint64_t> gather(Collectives& collectives, uint64_t number) {
  const at::Tensor numbers = at::zeros({collectives.size()}, at::kLong);
  auto* const data = numbers.mutable_data_ptr<int64_t>();
  std::memcpy(data + collectives.rank(), &number, sizeof(number));
  collectives.all_reduce_async(numbers);
  collectives.wait(numbers);
  std::vector<uint64_t> all(static_cast<size_t>(collectives.size()));
  std::memcpy(all.data(), data, all.size() * sizeof(uint64_t));
  return all;
}

std::vector<std::string> gather(Collectives& collectives, const std::string& text) {
  constexpr size_t kBytes = 256;
  const at::Tensor texts = at::zeros({collectives.size(), kBytes}, at::kByte);
  auto* const data = reinterpret_cast<char*>(texts.mutable_data_ptr<uint8_t>());
  std::memcpy(data + kBytes * static_cast<size_t>(collectives.rank()), text.data(),
              std::min(text.size(), kBytes - 1));
  collectives.all_reduce_async(texts);
  collectives.wait(texts);
  std::vector<std::string> all;
  for (int rank = 0; rank < collectives.size(); ++rank) {
    all.emplace_back(data + kBytes * static_cast<size_t>(rank));
  }
  return all;
}

std::vector<std::string> gather_bytes(Collectives& collectives, const std::string& bytes) {
  const std::vector<uint64_t> sizes = gather(collectives, static_cast<uint64_t>(bytes.size()));
  uint64_t sum = 0, begin = 0;
  for (size_t rank = 0; rank < sizes.size(); ++rank) {
    if (rank == static_cast<size_t>(collectives.rank())) begin = sum;
    sum += sizes[rank];
  }
  std::vector<std::string> all(sizes.size());
  if (sum == 0) return all;
  const at::Tensor buffer = at::zeros({static_cast<int64_t>(sum)}, at::kByte);
  auto* data = reinterpret_cast<char*>(buffer.mutable_data_ptr<uint8_t>());
  std::memcpy(data + begin, bytes.data(), bytes.size());
  collectives.all_reduce_async(buffer);
  collectives.wait(buffer);
  for (size_t rank = 0; rank < sizes.size(); ++rank) {
    all[rank].assign(data, sizes[rank]);
    data += sizes[rank];
  }
  return all;
}

bool any_of(Collectives& collectives, bool one) {
  return sum_over_all(collectives, {one ? 1.0 : 0.0}).front() > 0;
}

void broadcast_all(Collectives& collectives, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) collectives.broadcast(tensor.detach());
}

std::string text_of_first(Collectives& collectives, const std::string& text) {
  const at::Tensor size = at::zeros({1}, at::kLong);
  *size.mutable_data_ptr<int64_t>() = static_cast<int64_t>(text.size());
  collectives.broadcast(size);
  const int64_t bytes = *size.const_data_ptr<int64_t>();
  if (bytes == 0) return {};
  const at::Tensor buffer = at::zeros({bytes}, at::kByte);
  auto* const data = buffer.mutable_data_ptr<uint8_t>();
  if (collectives.rank() == 0) std::memcpy(data, text.data(), text.size());
  collectives.broadcast(buffer);
  return {data, data + bytes};
}

void require_same(Collectives& collectives, const std::string& what, const std::string& text) {
  const std::vector<std::string> all = gather(collectives, xxh3_128(text));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all.front()) continue;
    throw UsageError(
        fmt::format("{} of rank {} differs from that of rank 0: start all processes with the same "
                    "program, recipe, options and data",
                    what, rank));
  }
}

std::string broadcast_from_rank0(Collectives& collectives,
                                 const std::function<std::string()>& function) {
  std::string text;
  int code = 0;
  std::exception_ptr thrown;
  if (collectives.rank() == 0) {
    try {
      text = function();
    } catch (const Error& error) {
      thrown = std::current_exception();
      code = static_cast<int>(error.code());
      text = error.what();
    }
  }
  code = static_cast<int>(sum_over_all(collectives, {static_cast<double>(code)}).front());
  text = text_of_first(collectives, text);
  if (thrown) std::rethrow_exception(thrown);
  if (code != 0) throw Rank0Error(static_cast<ExitCode>(code), text);
  return text;
}

}  // namespace gallop::parallel
