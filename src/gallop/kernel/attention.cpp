#include "gallop/kernel/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "gallop/kernel/attention_by_tiles.h"
#include "gallop/kernel/cpu/attention.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/gemm.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"

namespace gallop::kernel {

namespace {

// Memory of one thread, allocated in parts that begin at cache lines.
class Workspace {
 public:
  template <typename Number>
  Number* take(int64_t count) {
    // Zero-initialized, so that the padding of a matrix stays 0.
    parts_.emplace_back(static_cast<size_t>(count) * sizeof(Number) + kLine);
    void* data = parts_.back().data();
    size_t space = parts_.back().size();
    return static_cast<Number*>(std::align(kLine, space - kLine, data, space));
  }

 private:
  static constexpr size_t kLine = 64;
  std::vector<std::vector<char>> parts_;
};

// Attention of the queries of a head, whose number is HeadOptions::tokens, to as many keys, or to
// another number of them if it is not causal.
template <typename Number>
class HeadAttention {
 public:
  HeadAttention(Isa isa, const HeadOptions& options, int64_t keys)
      : isa_(isa), options_(options), all_keys_(keys) {}

  // Buffers that both passes need for a head.
  struct Head {
    Head(Workspace& space, int64_t queries, int64_t keys, int64_t width)
        : query(space.take<Number>(queries * width)),
          key(space.take<Number>(keys * width)),
          key_transposed(space.take<Number>(keys * width)),
          value(space.take<Number>(keys * width)) {}
    Number *query, *key, *key_transposed, *value;
  };

  // Buffers for at most so many queries and keys, in padded numbers.
  struct Forward {
    Forward(Isa isa, int64_t queries, int64_t keys, int64_t width)
        : Forward(isa, queries, keys, width, block(keys)) {}
    Forward(Isa isa, int64_t queries, int64_t keys, int64_t width, int64_t block)
        : products(isa),
          head(space, queries, keys, width),
          value_vnni(space.take<Number>(keys * width)),
          weights(space.take<Number>(block * keys)),
          scores(space.take<float>(block * keys)),
          y(space.take<float>(block * width)),
          sums(space.take<float>(block)) {}
    Workspace space;
    Gemm<Number> products;
    Head head;
    Number *value_vnni, *weights;
    float *scores, *y, *sums;
  };

  struct Backward {
    Backward(Isa isa, int64_t queries, int64_t keys, int64_t width)
        : Backward(isa, queries, keys, width, block(keys)) {}
    Backward(Isa isa, int64_t queries, int64_t keys, int64_t width, int64_t block)
        : products(isa),
          head(space, queries, keys, width),
          query_transposed(space.take<Number>(queries * width)),
          query_vnni(space.take<Number>(queries * width)),
          dy(space.take<Number>(queries * width)),
          dy_transposed(space.take<Number>(queries * width)),
          dy_vnni(space.take<Number>(queries * width)),
          weights(space.take<Number>(keys * block)),
          dscores(space.take<Number>(keys * block)),
          dscores_vnni(space.take<Number>(keys * block)),
          scores(space.take<float>(keys * block)),
          dweights(space.take<float>(keys * block)),
          dquery(space.take<float>(width * block)),
          dkey(space.take<float>(keys * width)),
          dvalue(space.take<float>(keys * width)),
          dots(space.take<float>(queries)) {}
    Workspace space;
    Gemm<Number> products;
    Head head;
    Number *query_transposed, *query_vnni;
    Number *dy, *dy_transposed, *dy_vnni, *weights, *dscores, *dscores_vnni;
    float *scores, *dweights, *dquery, *dkey, *dvalue, *dots;
  };

  void forward(const HeadParts<const Number>& parts, const Matrix<Number>& y, float* log_sums,
               const Forward& work) const {
    const Padded query = padded_part(parts.query, options_.cosines, work.head.query);
    const Padded key = padded_part(parts.key, options_.cosines, work.head.key);
    const Padded value = padded_part(parts.value, nullptr, work.head.value);
    layout_.transpose_and_pair(key, work.head.key_transposed);
    layout_.pair(value, work.value_vnni);
    for (int64_t first = 0; first < options_.tokens; first += block()) {
      const int64_t count = std::min(block(), options_.tokens - first),
                    rows = padded<Number>(count);
      const int64_t keys = keys_of(first, count), columns = padded<Number>(keys);
      work.products.multiply(rows, columns, width_, query.row(first), query.stride,
                             work.head.key_transposed, keys_, work.scores, columns, false);
      kernels_.softmax({work.scores, count, keys, columns}, options_.scale, visible_to(first),
                       {work.weights, count, columns, columns}, work.sums, log_sums + first);
      work.products.multiply(rows, width_, columns, work.weights, columns, work.value_vnni, width_,
                             work.y, width_, false);
      kernels_.divide(work.y, width_, work.sums, {y.row(first), count, y.columns, y.stride});
    }
  }

  // Scores and their gradients are computed transposed, [keys, queries], so that they are the left
  // operand of the GEMMs for the gradients of keys and values.
  void backward(const HeadParts<const Number>& parts, const Matrix<const Number>& y,
                const Matrix<const Number>& dy, const float* log_sums,
                const HeadParts<Number>& gradients, const Backward& work) const {
    kernels_.dot(dy, y, work.dots);
    const Padded query = padded_part(parts.query, options_.cosines, work.head.query);
    const Padded key = padded_part(parts.key, options_.cosines, work.head.key);
    const Padded value = padded_part(parts.value, nullptr, work.head.value);
    const Padded dy_padded = padded_part(dy, nullptr, work.dy);
    layout_.transpose_and_pair(query, work.query_transposed);
    layout_.pair(query, work.query_vnni);
    layout_.transpose_and_pair(dy_padded, work.dy_transposed);
    layout_.pair(dy_padded, work.dy_vnni);
    layout_.transpose(key, work.head.key_transposed);
    std::fill_n(work.dkey, keys_ * width_, 0.0F);
    std::fill_n(work.dvalue, keys_ * width_, 0.0F);

    const Matrix<Number>& dquery = gradients.query;
    for (int64_t first = 0; first < options_.tokens; first += block()) {
      const int64_t count = std::min(block(), options_.tokens - first);
      const int64_t columns = padded<Number>(count);
      const int64_t keys = keys_of(first, count), rows = padded<Number>(keys);
      const auto& products = work.products;
      products.multiply(rows, columns, width_, key.data, key.stride,
                        columns_from(work.query_transposed, first), queries_, work.scores, columns,
                        false);
      products.multiply(rows, columns, width_, value.data, value.stride,
                        columns_from(work.dy_transposed, first), queries_, work.dweights, columns,
                        false);
      kernels_.backward({work.scores, keys, count, columns}, work.dweights, options_.scale,
                        visible_to(first), log_sums + first, work.dots + first,
                        {work.weights, rows, columns, columns}, work.dscores, work.dscores_vnni);
      products.multiply(rows, width_, columns, work.weights, columns, work.dy_vnni + first * width_,
                        width_, work.dvalue, width_, true);
      products.multiply(rows, width_, columns, work.dscores, columns,
                        work.query_vnni + first * width_, width_, work.dkey, width_, true);
      products.multiply(width_, columns, rows, work.head.key_transposed, keys_, work.dscores_vnni,
                        columns, work.dquery, columns, false);
      kernels_.write_transposed(work.dquery, columns, cosines_of(first),
                                {dquery.row(first), count, dquery.columns, dquery.stride});
    }
    kernels_.write(work.dkey, width_, options_.cosines, gradients.key);
    kernels_.write(work.dvalue, width_, nullptr, gradients.value);
  }

 private:
  using Padded = Matrix<const Number>;

  // Number of queries processed at once. Smaller blocks compute fewer masked scores.
  static int64_t block(int64_t keys) { return keys <= 256 ? 32 : 64; }
  int64_t block() const { return block(all_keys_); }

  // Number of keys that queries [first, first + count) attend to, and that the first one does.
  int64_t keys_of(int64_t first, int64_t count) const {
    return options_.causal ? first + count : all_keys_;
  }
  int64_t visible_to(int64_t query) const { return options_.causal ? query + 1 : all_keys_; }

  // The matrix as GEMMs take it: in place if it needs no padding or rotation, unless it has so
  // many rows that they would conflict in the core's cache.
  Padded padded_part(const Matrix<const Number>& from, const float* cosines, Number* room) const {
    constexpr int64_t kFewTokens = 256;
    const int64_t rows = padded<Number>(from.rows);
    if (cosines == nullptr && from.rows == rows && from.columns == width_ && rows <= kFewTokens) {
      return from;
    }
    kernels_.copy(from, cosines, room, width_);
    // A longer document may have used them.
    std::fill_n(room + from.rows * width_, (rows - from.rows) * width_, Number{0});
    return {room, rows, width_, width_};
  }

  // The address of column `first` of a VNNI-packed matrix.
  static const Number* columns_from(const Number* vnni_packed, int64_t first) {
    return vnni_packed + (std::is_same_v<Number, Bf16> ? 2 : 1) * first;
  }
  const float* cosines_of(int64_t token) const {
    return options_.cosines == nullptr ? nullptr : options_.cosines + token * options_.width;
  }

  Isa isa_;
  HeadOptions options_;
  int64_t all_keys_;
  int64_t queries_ = padded<Number>(options_.tokens), keys_ = padded<Number>(all_keys_),
          width_ = padded<Number>(options_.width);
  AttentionKernels<Number> kernels_ = kernels_for<AttentionKernels<Number>>(isa_);
  LayoutKernels<Number> layout_ = kernels_for<LayoutKernels<Number>>(isa_);
};

template <typename Number>
class Attention {
 public:
  Attention(Isa isa, const AttentionShape& shape, const AttentionOptions& options)
      : isa_(isa),
        shape_(shape),
        options_{.tokens = shape.tokens,
                 .width = shape.width,
                 .causal = options.causal,
                 .scale = static_cast<float>(options.scale),
                 .cosines = options.rotation_TD.defined()
                                ? options.rotation_TD.const_data_ptr<float>()
                                : nullptr},
        documents_(options.position_ids_BT, shape.batch, shape.tokens) {}

  void forward(const Number* qkv, Number* y, float* log_sums) const {
    if constexpr (std::is_same_v<Number, Bf16>) {
      const AttentionByTiles tiles(isa_, shape_, options_, documents_);
      if (tiles.is_there()) return tiles.forward(qkv, y, log_sums);
    }
    at::parallel_for(0, shape_.count(), 1, [&](int64_t begin, int64_t end) {
      const typename Head::Forward work(isa_, most_tokens(), most_tokens(),
                                        padded<Number>(shape_.width));
      for (int64_t i = begin; i < end; ++i) {
        for (const Document& one : documents_.of_row(i / shape_.heads)) {
          head_of(one).forward(shape_.parts(qkv, i, one), one.of(shape_.output(y, i)),
                               log_sums + i * shape_.tokens + one.begin, work);
        }
      }
    });
  }

  void backward(const Number* dy, const Number* qkv, const Number* y, const float* log_sums,
                Number* dqkv) const {
    if constexpr (std::is_same_v<Number, Bf16>) {
      const AttentionByTiles tiles(isa_, shape_, options_, documents_);
      if (tiles.is_there()) return tiles.backward(dy, qkv, y, log_sums, dqkv);
    }
    at::parallel_for(0, shape_.count(), 1, [&](int64_t begin, int64_t end) {
      const typename Head::Backward work(isa_, most_tokens(), most_tokens(),
                                         padded<Number>(shape_.width));
      for (int64_t i = begin; i < end; ++i) {
        for (const Document& one : documents_.of_row(i / shape_.heads)) {
          head_of(one).backward(
              shape_.parts(qkv, i, one), one.of(shape_.output(y, i)), one.of(shape_.output(dy, i)),
              log_sums + i * shape_.tokens + one.begin, shape_.parts(dqkv, i, one), work);
        }
      }
    });
  }

 private:
  using Head = HeadAttention<Number>;

  int64_t most_tokens() const { return padded<Number>(documents_.longest()); }
  Head head_of(const Document& one) const {
    HeadOptions options = options_;
    options.tokens = one.tokens;
    return Head(isa_, options, one.tokens);
  }

  Isa isa_;
  AttentionShape shape_;
  HeadOptions options_;
  Documents documents_;
};

// The heads of a tensor [B, H, T, D], counted over the batch.
template <typename Any>
class Heads {
 public:
  explicit Heads(const at::Tensor& x_BHTD)
      : data_(data_of<Any>(x_BHTD)),
        heads_(x_BHTD.size(1)),
        rows_(x_BHTD.size(2)),
        columns_(x_BHTD.size(3)),
        strides_{x_BHTD.stride(0), x_BHTD.stride(1), x_BHTD.stride(2)} {}

  Matrix<Any> operator[](int64_t i) const {
    return {data_ + i / heads_ * strides_[0] + i % heads_ * strides_[1], rows_, columns_,
            strides_[2]};
  }

 private:
  Any* data_;
  int64_t heads_, rows_, columns_;
  std::array<int64_t, 3> strides_;
};

// The heads of queries, keys and values.
template <typename Any>
struct HeadsOfParts {
  explicit HeadsOfParts(const AttentionParts& parts)
      : query(parts.query_BHTD), key(parts.key_BHSD), value(parts.value_BHSD) {}
  HeadParts<Any> operator[](int64_t i) const { return {query[i], key[i], value[i]}; }
  Heads<Any> query, key, value;
};

// Attention of each head of a block.
template <typename Number>
class BlockAttention {
 public:
  BlockAttention(Isa isa, const AttentionParts& parts, bool causal, double scale)
      : isa_(isa),
        parts_(parts),
        options_{.tokens = parts.query_BHTD.size(2),
                 .width = parts.query_BHTD.size(3),
                 .causal = causal,
                 .scale = static_cast<float>(scale),
                 .cosines = nullptr},
        keys_(parts.key_BHSD.size(2)),
        count_(parts.query_BHTD.size(0) * parts.query_BHTD.size(1)) {}

  void forward(const BlockAttentionOutput& output) const {
    const HeadsOfParts<const Number> inputs(parts_);
    const Heads<Number> y(output.y_BHTD);
    auto* const log_sums = data_of<float>(output.log_sums_BHT);
    for_each_head<typename Head::Forward>([&](const Head& head, int64_t i, const auto& work) {
      head.forward(inputs[i], y[i], log_sums + i * options_.tokens, work);
    });
  }

  void backward(const at::Tensor& dy_BHTD, const BlockAttentionOutput& output,
                const AttentionParts& gradients) const {
    const HeadsOfParts<const Number> inputs(parts_);
    const HeadsOfParts<Number> results(gradients);
    const Heads<const Number> dy(dy_BHTD), y(output.y_BHTD);
    const auto* const log_sums = data_of<const float>(output.log_sums_BHT);
    for_each_head<typename Head::Backward>([&](const Head& head, int64_t i, const auto& work) {
      head.backward(inputs[i], y[i], dy[i], log_sums + i * options_.tokens, results[i], work);
    });
  }

 private:
  using Head = HeadAttention<Number>;

  template <typename Work, typename Function>
  void for_each_head(const Function& function) const {
    at::parallel_for(0, count_, 1, [&](int64_t begin, int64_t end) {
      const Work work(isa_, padded<Number>(options_.tokens), padded<Number>(keys_),
                      padded<Number>(options_.width));
      const Head head(isa_, options_, keys_);
      for (int64_t i = begin; i < end; ++i) function(head, i, work);
    });
  }

  Isa isa_;
  const AttentionParts& parts_;
  HeadOptions options_;
  int64_t keys_, count_;
};

AttentionOptions options_of(bool causal, double scale, const std::optional<at::Tensor>& rotation,
                            const std::optional<at::Tensor>& position_ids) {
  return {.causal = causal,
          .scale = scale,
          .rotation_TD = rotation.value_or(at::Tensor()),
          .position_ids_BT = position_ids.value_or(at::Tensor())};
}

std::tuple<at::Tensor, at::Tensor> forward_on_cpu(const at::Tensor& qkv_BT3HD, bool causal,
                                                  double scale,
                                                  const std::optional<at::Tensor>& rotation,
                                                  const std::optional<at::Tensor>& position_ids) {
  auto output =
      attention_by(best_isa(), qkv_BT3HD, options_of(causal, scale, rotation, position_ids));
  return {output.y_BTHD, output.log_sums_BHT};
}

at::Tensor backward_on_cpu(const at::Tensor& dy_BTHD, const at::Tensor& qkv_BT3HD,
                           const at::Tensor& y_BTHD, const at::Tensor& log_sums_BHT, bool causal,
                           double scale, const std::optional<at::Tensor>& rotation,
                           const std::optional<at::Tensor>& position_ids) {
  return attention_backward_by(best_isa(), dy_BTHD, qkv_BT3HD, {y_BTHD, log_sums_BHT},
                               options_of(causal, scale, rotation, position_ids));
}

std::tuple<at::Tensor, at::Tensor> block_forward_on_cpu(const at::Tensor& query,
                                                        const at::Tensor& key,
                                                        const at::Tensor& value, bool causal,
                                                        double scale) {
  auto output = attention_block_by(best_isa(), {query, key, value}, causal, scale);
  return {output.y_BHTD, output.log_sums_BHT};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> block_backward_on_cpu(
    const at::Tensor& dy, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& y, const at::Tensor& log_sums, bool causal, double scale) {
  auto gradients = attention_block_backward_by(best_isa(), dy, {query, key, value}, {y, log_sums},
                                               causal, scale);
  return {gradients.query_BHTD, gradients.key_BHSD, gradients.value_BHSD};
}

const auto& forward_operator() {
  static const Operator kForward(
      "attention(Tensor qkv, bool causal, float scale, Tensor? rotation, Tensor? position_ids) -> "
      "(Tensor y, Tensor log_sums)",
      forward_on_cpu);
  return kForward;
}

const auto& backward_operator() {
  static const Operator kBackward(
      "attention_backward(Tensor dy, Tensor qkv, Tensor y, Tensor log_sums, bool causal, float "
      "scale, Tensor? rotation, Tensor? position_ids) -> Tensor",
      backward_on_cpu);
  return kBackward;
}

// Whether the kernels support it and are faster than LibTorch's.
bool is_fastest(at::ScalarType type, int64_t keys, int64_t width, bool causal) {
  if (type != at::kFloat && type != at::kBFloat16) return false;
  // In fp32, LibTorch's kernel is faster if whole rows of scores exceed the cache.
  const int64_t most_keys = type == at::kBFloat16 || causal ? 2048 : 1024;
  return keys <= most_keys && width <= kMaxHeadWidth && width % 2 == 0;
}

}  // namespace

c10::OperatorHandle attention_operator() { return forward_operator().handle(); }
c10::OperatorHandle attention_backward_operator() { return backward_operator().handle(); }

bool takes_attention(const at::Tensor& qkv_BT3HD, bool causal) {
  if (!qkv_BT3HD.is_cpu() || !qkv_BT3HD.is_contiguous() || qkv_BT3HD.dim() != 5) return false;
  const AttentionShape shape(qkv_BT3HD);
  return is_fastest(qkv_BT3HD.scalar_type(), shape.tokens, shape.width, causal);
}

AttentionOutput attention_by(Isa isa, const at::Tensor& qkv_BT3HD,
                             const AttentionOptions& options) {
  const AttentionShape shape(qkv_BT3HD);
  AttentionOutput output{
      .y_BTHD =
          at::empty({shape.batch, shape.tokens, shape.heads, shape.width}, qkv_BT3HD.options()),
      .log_sums_BHT = at::empty({shape.batch, shape.heads, shape.tokens}, at::kFloat)};
  const auto run = [&]<typename Number>(const Attention<Number>& kernel) {
    kernel.forward(data_of<const Number>(qkv_BT3HD), data_of<Number>(output.y_BTHD),
                   data_of<float>(output.log_sums_BHT));
  };
  if (qkv_BT3HD.scalar_type() == at::kBFloat16) {
    run(Attention<Bf16>(isa, shape, options));
  } else {
    run(Attention<float>(isa, shape, options));
  }
  return output;
}

at::Tensor attention_backward_by(Isa isa, const at::Tensor& dy_BTHD, const at::Tensor& qkv_BT3HD,
                                 const AttentionOutput& output, const AttentionOptions& options) {
  const AttentionShape shape(qkv_BT3HD);
  const at::Tensor dy = dy_BTHD.contiguous();
  at::Tensor dqkv = at::empty(qkv_BT3HD.sizes(), qkv_BT3HD.options());
  const auto run = [&]<typename Number>(const Attention<Number>& kernel) {
    kernel.backward(data_of<const Number>(dy), data_of<const Number>(qkv_BT3HD),
                    data_of<const Number>(output.y_BTHD), data_of<const float>(output.log_sums_BHT),
                    data_of<Number>(dqkv));
  };
  if (qkv_BT3HD.scalar_type() == at::kBFloat16) {
    run(Attention<Bf16>(isa, shape, options));
  } else {
    run(Attention<float>(isa, shape, options));
  }
  return dqkv;
}

bool takes_attention_block(const AttentionParts& parts, bool causal) {
  const at::Tensor& query = parts.query_BHTD;
  for (const at::Tensor* one : {&query, &parts.key_BHSD, &parts.value_BHSD}) {
    if (!one->is_cpu() || one->scalar_type() != query.scalar_type() || one->stride(3) != 1) {
      return false;
    }
  }
  return is_fastest(query.scalar_type(), parts.key_BHSD.size(2), query.size(3), causal);
}

BlockAttentionOutput attention_block_by(Isa isa, const AttentionParts& parts, bool causal,
                                        double scale) {
  const at::Tensor& query = parts.query_BHTD;
  const int64_t batch = query.size(0), heads = query.size(1), tokens = query.size(2);
  BlockAttentionOutput output{
      .y_BHTD = at::empty({batch, tokens, heads, query.size(3)}, query.options()).transpose(1, 2),
      .log_sums_BHT = at::empty({batch, heads, tokens}, at::kFloat)};
  if (query.scalar_type() == at::kBFloat16) {
    BlockAttention<Bf16>(isa, parts, causal, scale).forward(output);
  } else {
    BlockAttention<float>(isa, parts, causal, scale).forward(output);
  }
  return output;
}

AttentionParts attention_block_backward_by(Isa isa, const at::Tensor& dy_BHTD,
                                           const AttentionParts& parts,
                                           const BlockAttentionOutput& output, bool causal,
                                           double scale) {
  AttentionParts gradients{.query_BHTD = at::empty_like(parts.query_BHTD),
                           .key_BHSD = at::empty_like(parts.key_BHSD),
                           .value_BHSD = at::empty_like(parts.value_BHSD)};
  const BlockAttentionOutput dense{.y_BHTD = output.y_BHTD,
                                   .log_sums_BHT = output.log_sums_BHT.contiguous()};
  if (dy_BHTD.scalar_type() == at::kBFloat16) {
    BlockAttention<Bf16>(isa, parts, causal, scale).backward(dy_BHTD, dense, gradients);
  } else {
    BlockAttention<float>(isa, parts, causal, scale).backward(dy_BHTD, dense, gradients);
  }
  return gradients;
}

BlockAttentionOutput attention_block(const AttentionParts& parts, bool causal, double scale) {
  static const Operator kForward(
      "attention_block(Tensor query, Tensor key, Tensor value, bool causal, float scale) -> "
      "(Tensor y, Tensor log_sums)",
      block_forward_on_cpu);
  auto [y, log_sums] = kForward(parts.query_BHTD, parts.key_BHSD, parts.value_BHSD, causal, scale);
  return {.y_BHTD = std::move(y), .log_sums_BHT = std::move(log_sums)};
}

AttentionParts attention_block_backward(const at::Tensor& dy_BHTD, const AttentionParts& parts,
                                        const BlockAttentionOutput& output, bool causal,
                                        double scale) {
  static const Operator kBackward(
      "attention_block_backward(Tensor dy, Tensor query, Tensor key, Tensor value, Tensor y, "
      "Tensor log_sums, bool causal, float scale) -> (Tensor dquery, Tensor dkey, Tensor dvalue)",
      block_backward_on_cpu);
  auto [query, key, value] = kBackward(dy_BHTD, parts.query_BHTD, parts.key_BHSD, parts.value_BHSD,
                                       output.y_BHTD, output.log_sums_BHT, causal, scale);
  return {std::move(query), std::move(key), std::move(value)};
}

AttentionOutput attention(const at::Tensor& qkv_BT3HD, const AttentionOptions& options) {
  auto [y, log_sums] = forward_operator()(qkv_BT3HD, options.causal, options.scale,
                                          options.rotation_TD, options.position_ids_BT);
  return {.y_BTHD = std::move(y), .log_sums_BHT = std::move(log_sums)};
}

at::Tensor attention_backward(const at::Tensor& dy_BTHD, const at::Tensor& qkv_BT3HD,
                              const AttentionOutput& output, const AttentionOptions& options) {
  return backward_operator()(dy_BTHD, qkv_BT3HD, output.y_BTHD, output.log_sums_BHT, options.causal,
                             options.scale, options.rotation_TD, options.position_ids_BT);
}

at::Tensor rotation(int64_t tokens, int64_t head_width) {
  const int64_t half = head_width / 2;
  at::Tensor table = at::empty({tokens, head_width}, at::kFloat);
  auto* values = table.mutable_data_ptr<float>();
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) *
                           std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
      values[t * head_width + i] = static_cast<float>(std::cos(angle));
      values[t * head_width + half + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

}  // namespace gallop::kernel
