#include "gallop/model/exported/tensor_parallel_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/option_error.h"
#include "gallop/model/exported/node_values.h"
#include "gallop/model/exported/sharding.h"
#include "gallop/model/tensor_parallel.h"

namespace gallop::model::exported {

namespace {

constexpr const char* kOption = "parallel.tp_plan";

// The number of equal groups that the outputs of one layer may consist of: gates and values;
// queries, keys and values.
constexpr std::array<int64_t, 3> kGroups = {1, 2, 3};

/// A linear layer whose parameters only it reads.
struct Layer {
  size_t node = 0;
  LinearCall call;
  std::string module;  ///< "layers.0.fc1".
};

std::string module_of(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? parameter : parameter.substr(0, dot);
}

/// What an entry of the option asks for.
struct Entry {
  std::string pattern;
  std::optional<ParallelStyle> style{};  ///< Nothing: replicate.
};

std::vector<Entry> parse(const std::vector<std::string>& texts) {
  std::vector<Entry> entries;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    const std::string style = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (style != "colwise" && style != "rowwise" && style != "replicate") {
      throw config::OptionError(
          kOption, fmt::format("has the entry '{}', which is not PATTERN=colwise, PATTERN=rowwise "
                               "or PATTERN=replicate",
                               printable(text)));
    }
    Entry& entry = entries.emplace_back(Entry{.pattern = text.substr(0, equals)});
    if (style == "colwise") entry.style = ParallelStyle::kColwise;
    if (style == "rowwise") entry.style = ParallelStyle::kRowwise;
  }
  return entries;
}

/// A parameter [rows, width] that is a table of embeddings, the weight of the linear layer that
/// computes the logits, or both.
struct Vocabulary {
  std::vector<std::string> modules;  ///< "transformer.wte" and, if it is tied, "lm_head".
  std::vector<std::string> values;   ///< The names of its values in the graph.
  std::string bias{};                ///< Of the linear layer.
  std::optional<size_t> head{};      ///< The node of the linear layer.
  int64_t rows = 0, width = 0;
};

/// Chooses the layers.
class Planner {
 public:
  Planner(const Program& program, const TensorParallelOptions& options)
      : graph_(program.graph),
        names_(parameters_of(program, options)),
        entries_(parse(options.entries)),
        options_(options) {
    is_automatic_ = std::none_of(entries_.begin(), entries_.end(),
                                 [](const Entry& entry) { return entry.style.has_value(); });
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      std::set<std::string> read;
      visit_reads(graph_.nodes[i], [&](const std::string& name, bool) { read.insert(name); });
      for (const std::string& name : read) readers_[name].push_back(i);
    }
    for (const Argument& output : graph_.outputs) {
      visit_values(output, [&](const std::string& name, bool) { outputs_.insert(name); });
    }
    find_vocabularies(program);
    find_layers();
  }

  TensorParallelPlan run() {
    check_entries();
    for (const Vocabulary& vocabulary : vocabularies_) {
      if (!is_to_divide(vocabulary)) continue;
      const Shard rows{0, vocabulary.rows};
      for (const std::string& value : vocabulary.values) shards_[value] = rows;
      if (!vocabulary.bias.empty()) shards_[vocabulary.bias] = rows;
    }
    for (const auto& [node, layer] : layers_) {
      if (may_be(layer, ParallelStyle::kColwise)) divide_by_outputs(layer);
    }
    for (const auto& [node, layer] : layers_) {
      if (!is_automatic_ && may_be(layer, ParallelStyle::kRowwise) && !is_divided(layer)) {
        Trial trial(*this);
        divide_by_inputs(layer);
        if (!propagate({node})) fail_to_follow(layer, "rowwise");
        trial.accept();
      }
    }
    TensorParallelPlan plan;
    for (const auto& [value, name] : names_) {
      if (const auto found = shards_.find(value); found != shards_.end()) {
        plan.emplace(name, found->second);
      }
    }
    const bool has_layers = std::any_of(layers_.begin(), layers_.end(),
                                        [this](const auto& one) { return is_divided(one.second); });
    if (plan.empty() || (is_automatic_ && !has_layers)) fail_to_divide();
    return plan;
  }

 private:
  // Takes back what it has added to the shards, unless it is accepted.
  class Trial {
   public:
    explicit Trial(Planner& planner) : planner_(planner) { planner_.added_.clear(); }
    ~Trial() {
      if (is_accepted_) return;
      for (const std::string& name : planner_.added_) planner_.shards_.erase(name);
    }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    void accept() { is_accepted_ = true; }

   private:
    Planner& planner_;
    bool is_accepted_ = false;
  };

  // Whether the value is a parameter that one node reads, by any of its names.
  bool is_read_once(const std::string& value) {
    const auto name = names_.find(value);
    if (name == names_.end()) return false;
    size_t readers = 0;
    for (const auto& [other, its_name] : names_) {
      if (its_name == name->second) readers += readers_[other].size();
    }
    return readers == 1;
  }

  void find_vocabularies(const Program& program) {
    std::map<std::string, Vocabulary> found;
    for (const InputSpec& input : program.inputs) {
      if (input.kind != InputSpec::Kind::kParameter) continue;
      const std::string value = tensor_name_of(input.value);
      const auto& sizes = graph_.tensors.at(value).sizes;
      if (sizes.size() != 2) continue;
      Vocabulary& one = found[names_.at(value)];
      one.modules.push_back(module_of(input.name));
      one.values.push_back(value);
      one.rows = sizes[0].hint.value_or(0);
      one.width = sizes[1].hint.value_or(0);
    }
    for (auto& [name, one] : found) {
      if (has_known_readers(one)) vocabularies_.push_back(std::move(one));
    }
  }

  // Whether nothing reads the parameter but lookups and, once, the layer that computes the logits.
  bool has_known_readers(Vocabulary& vocabulary) {
    bool is_read = false;
    for (const std::string& value : vocabulary.values) {
      for (const size_t reader : readers_[value]) {
        is_read = true;
        const Node& node = graph_.nodes[reader];
        if (is_look_up(node, value)) continue;
        const auto call = find_linear_call(graph_, node);
        if (!call || call->weight != value || call->out_dim != 0 || vocabulary.head ||
            !computes_logits(node) || outputs_.contains(value)) {
          return false;
        }
        if (!call->bias.empty() && !is_read_once(call->bias)) return false;
        vocabulary.head = reader;
        vocabulary.bias = call->bias;
      }
    }
    return is_read && vocabulary.rows >= options_.processes;
  }

  // Whether the node's result [B, classes] or [B, T, classes] is what the loss reads and nothing
  // else does.
  bool computes_logits(const Node& node) {
    constexpr size_t kMostDims = 3;
    if (node.outputs.empty()) return false;
    const std::string result = tensor_name_of(node.outputs.front());
    return result == options_.logits && readers_[result].empty() &&
           graph_.tensors.at(result).sizes.size() <= kMostDims &&
           std::count_if(graph_.outputs.begin(), graph_.outputs.end(), [&](const Argument& output) {
             return tensor_name_of(output) == result;
           }) == 1;
  }

  // Small ones are not worth a sum of activations.
  bool is_to_divide(const Vocabulary& vocabulary) const {
    constexpr int64_t kLarge = int64_t{1} << 20;
    for (const Entry& entry : entries_) {
      const bool matches = std::any_of(
          vocabulary.modules.begin(), vocabulary.modules.end(),
          [&](const std::string& module) { return matches_pattern(module, entry.pattern); });
      if (matches) return entry.style.has_value();
    }
    return is_automatic_ && vocabulary.rows * vocabulary.width >= kLarge;
  }

  void find_layers() {
    std::set<size_t> heads;
    for (const Vocabulary& one : vocabularies_) {
      if (one.head && is_to_divide(one)) heads.insert(*one.head);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto call = find_linear_call(graph_, graph_.nodes[i]);
      if (!call || heads.contains(i) || !is_read_once(call->weight)) continue;
      if (!call->bias.empty() && !is_read_once(call->bias)) continue;
      layers_.emplace(
          i, Layer{.node = i, .call = *call, .module = module_of(names_.at(call->weight))});
    }
  }

  void check_entries() const {
    std::vector<std::string> modules;
    for (const auto& [node, layer] : layers_) modules.push_back(layer.module);
    for (const Vocabulary& one : vocabularies_) {
      modules.insert(modules.end(), one.modules.begin(), one.modules.end());
    }
    for (const Entry& entry : entries_) {
      const bool is_used = std::any_of(modules.begin(), modules.end(), [&](const auto& module) {
        return matches_pattern(module, entry.pattern);
      });
      if (is_used) continue;
      const std::string nearest = nearest_name(entry.pattern, modules);
      throw config::OptionError(
          kOption,
          fmt::format("'{}' matches no linear layer or embedding of {}{}", printable(entry.pattern),
                      options_.file,
                      modules.empty()   ? ", which has none that can be divided"
                      : nearest.empty() ? fmt::format(", such as '{}'", printable(modules.front()))
                                        : fmt::format("; did you mean '{}'?", printable(nearest))));
    }
  }

  // Whether the entries ask for this style or, without colwise and rowwise ones, do not exclude it.
  bool may_be(const Layer& layer, ParallelStyle style) const {
    for (const Entry& entry : entries_) {
      if (matches_pattern(layer.module, entry.pattern)) return entry.style == style;
    }
    return is_automatic_;
  }
  bool is_divided(const Layer& layer) const { return shards_.contains(layer.call.weight); }

  void add(const std::string& name, const Shard& shard) {
    if (shards_.emplace(name, shard).second) added_.push_back(name);
  }

  void divide_by_outputs(const Layer& layer) {
    if (is_divided(layer)) {
      if (is_automatic_) return;
      problem_ = "reads a tensor that is divided already";
      problem_node_ = layer.node;
      fail_to_follow(layer, "colwise");
    }
    std::optional<std::pair<std::string, size_t>> first;
    for (const int64_t groups : kGroups) {
      const auto& weight = graph_.tensors.at(layer.call.weight);
      const int64_t size = weight.sizes[static_cast<size_t>(layer.call.out_dim)].hint.value_or(-1);
      Trial trial(*this);
      problem_node_ = layer.node;
      problem_ =
          fmt::format("has {} outputs, which {} processes do not divide", size, options_.processes);
      if (size > 0 && size % (groups * options_.processes) == 0) {
        add(layer.call.weight, {layer.call.out_dim, size / groups});
        if (!layer.call.bias.empty()) add(layer.call.bias, {0, size / groups});
        if (propagate({layer.node})) return trial.accept();
      }
      if (!first) first.emplace(problem_, problem_node_);
    }
    std::tie(problem_, problem_node_) = *first;
    if (first_problem_.empty()) first_problem_ = problem_text(layer);
    if (!is_automatic_) fail_to_follow(layer, "colwise");
  }

  // Their groups are those of the inputs.
  void divide_by_inputs(const Layer& layer) {
    const auto input = shards_.find(layer.call.input);
    const auto& sizes = graph_.tensors.at(layer.call.weight).sizes;
    const int64_t size = sizes[static_cast<size_t>(layer.call.in_dim)].hint.value_or(0);
    add(layer.call.weight,
        {layer.call.in_dim, input != shards_.end() ? input->second.group : size});
  }

  // Whether the layer gets all channels in parts, and may be divided by inputs.
  bool ends_region(const Layer& layer) const {
    const auto input = shards_.find(layer.call.input);
    const int64_t last = static_cast<int64_t>(graph_.tensors.at(layer.call.input).sizes.size()) - 1;
    return input != shards_.end() && input->second.dim == last && !is_divided(layer) &&
           may_be(layer, ParallelStyle::kRowwise);
  }

  // Follows divided tensors from these nodes on. Returns whether all of them end in linear layers
  // that are divided by inputs.
  bool propagate(std::set<size_t> nodes) {
    while (!nodes.empty()) {
      const size_t index = *nodes.begin();
      nodes.erase(nodes.begin());
      const Node& node = graph_.nodes[index];
      problem_node_ = index;
      const auto layer = layers_.find(index);
      if (layer != layers_.end() && ends_region(layer->second)) divide_by_inputs(layer->second);
      const auto sharded = shard_node(graph_, node, shards_, options_.processes, problem_);
      if (!sharded) return false;
      for (const auto& [name, shard] : sharded->results) {
        const auto before = shards_.find(name);
        if (before != shards_.end()) {
          if (before->second == shard) continue;
          problem_ = "reads tensors that are divided along different dimensions";
          return false;
        }
        if (outputs_.contains(name)) {
          problem_ = "computes a result of the program";
          return false;
        }
        add(name, shard);
        for (const size_t reader : readers_[name]) nodes.insert(reader);
      }
    }
    return true;
  }

  std::string problem_text(const Layer& layer) const {
    const Node& node = graph_.nodes[problem_node_];
    return problem_node_ == layer.node
               ? fmt::format("'{}' {}", printable(layer.module), problem_)
               : fmt::format("the outputs of '{}' reach {}, which {}", printable(layer.module),
                             describe(node), problem_);
  }

  [[noreturn]] void fail_to_follow(const Layer& layer, const char* style) const {
    throw UsageError(fmt::format("{}: '{}' of {} cannot be divided {} among {} processes: {}",
                                 kOption, printable(layer.module), options_.file, style,
                                 options_.processes, problem_text(layer)));
  }

  [[noreturn]] void fail_to_divide() const {
    throw UsageError(fmt::format(
        "parallel.name=tensor: {} has no linear layers that {} processes can divide{}; use "
        "parallel.name=zero-2",
        options_.file, options_.processes, first_problem_.empty() ? "" : ": " + first_problem_));
  }

  const Graph& graph_;
  std::map<std::string, std::string> names_;
  std::vector<Entry> entries_;
  TensorParallelOptions options_;
  bool is_automatic_ = true;
  std::unordered_map<std::string, std::vector<size_t>> readers_;  // Readers of each value.
  std::set<std::string> outputs_;                                 // Outputs of the graph.
  std::vector<Vocabulary> vocabularies_;
  std::map<size_t, Layer> layers_;  // By node, without those that compute the logits.
  Shards shards_;                   // What is divided so far.
  std::vector<std::string> added_;  // By the present trial.
  std::string problem_, first_problem_;
  size_t problem_node_ = 0;
};

}  // namespace

std::map<std::string, std::string> parameters_of(const Program& program,
                                                 const TensorParallelOptions& options) {
  std::map<std::string, std::string> names;
  for (const InputSpec& input : program.inputs) {
    if (input.kind != InputSpec::Kind::kParameter) continue;
    const auto tied = options.tied.find(input.name);
    names[tensor_name_of(input.value)] = tied == options.tied.end() ? input.name : tied->second;
  }
  return names;
}

TensorParallelPlan plan_tensor_parallel(const Program& program,
                                        const TensorParallelOptions& options) {
  return Planner(program, options).run();
}

}  // namespace gallop::model::exported
