// Every operation against its definition in double, and that one's central differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/text.h"
#include "msrl/nn/static_graph.h"
#include "msrl/testing/gradients.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::RandomMatrix;
using testing::Slope;
using testing::Tol;

using MatrixList = std::vector<Eigen::MatrixXd>;

struct Shape {
  int rows, columns;
};

struct OpCase {
  std::string name;
  std::vector<Shape> inputs;          // normal numbers, with gradients
  std::vector<Shape> parameters;      // the same, in a Parameters object
  std::vector<Eigen::MatrixXf> data;  // further inputs, without gradients
  std::function<Node(StaticGraph&, const std::vector<Node>&, const std::vector<Parameter>&)> build;
  // of inputs, parameters, data
  std::function<Eigen::MatrixXd(const MatrixList&)> reference;
  std::function<float(float)> domain;  // applied to the inputs
};

std::ostream& operator<<(std::ostream& out, const OpCase& c) { return out << c.name; }

Eigen::MatrixXd SoftmaxRows(const Eigen::MatrixXd& x, int group) {
  Eigen::MatrixXd y = x.array().exp();
  for (Eigen::Index c = 0; c < x.cols(); ++c) {
    for (Eigen::Index i = 0; i < x.rows(); i += group) {
      y.col(c).segment(i, group) /= y.col(c).segment(i, group).sum();
    }
  }
  return y;
}

Eigen::MatrixXd NormOf(const Eigen::MatrixXd& x, bool centre) {
  Eigen::MatrixXd y = x;
  for (auto column : y.colwise()) {
    if (centre) column.array() -= column.mean();
    column /= std::sqrt(column.array().square().mean() + 1e-5);
  }
  return y;
}

Eigen::VectorXd PointsOf(const TwoHotBins& bins) {
  return Eigen::Map<const Eigen::VectorXf>(bins.points().data(), bins.count()).cast<double>();
}

// Cross-entropy of every head with weights that are hats around the points.
Eigen::MatrixXd TwoHotEntropyOf(const Eigen::MatrixXd& logits, const Eigen::MatrixXd& x,
                                const TwoHotBins& bins) {
  const Eigen::VectorXd b = PointsOf(bins);
  const bool symlog = bins.FromMean(1.0F) != 1.0F;
  const Eigen::Index n = b.size();
  Eigen::MatrixXd y(x.rows(), x.cols());
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const Eigen::MatrixXd p = SoftmaxRows(logits.middleRows(i * n, n), static_cast<int>(n));
    for (Eigen::Index j = 0; j < x.cols(); ++j) {
      const double raw = x(i, j);
      const double at =
          std::clamp(symlog ? std::copysign(std::log1p(std::abs(raw)), raw) : raw, b[0], b[n - 1]);
      double entropy = 0.0;
      for (Eigen::Index k = 0; k < n; ++k) {
        double weight = 0.0;
        if (k > 0 && at >= b[k - 1] && at <= b[k]) weight = (at - b[k - 1]) / (b[k] - b[k - 1]);
        if (k + 1 < n && at >= b[k] && at <= b[k + 1]) {
          weight = std::max(weight, (b[k + 1] - at) / (b[k + 1] - b[k]));
        }
        entropy -= weight * std::log(p(k, j));
      }
      y(i, j) = entropy;
    }
  }
  return y;
}

double SigmoidOf(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// All states of PyTorch's GRU.
Eigen::MatrixXd GruOf(const Eigen::MatrixXd& gates, Eigen::MatrixXd h, const Eigen::MatrixXd& w,
                      const Eigen::MatrixXd& b) {
  const Eigen::Index n = h.rows();
  const Eigen::Index batch = h.cols();
  Eigen::MatrixXd states(n, gates.cols());
  for (Eigen::Index t = 0; t * batch < gates.cols(); ++t) {
    const Eigen::MatrixXd x = gates.middleCols(t * batch, batch);
    const Eigen::MatrixXd u = (w * h).colwise() + b.col(0);
    const Eigen::ArrayXXd r = (x + u).topRows(n).unaryExpr(&SigmoidOf);
    const Eigen::ArrayXXd z = (x + u).middleRows(n, n).unaryExpr(&SigmoidOf);
    const Eigen::ArrayXXd m = (x.bottomRows(n).array() + r * u.bottomRows(n).array()).tanh();
    h = ((1.0 - z) * m + z * h.array()).matrix();
    states.middleCols(t * batch, batch) = h;
  }
  return states;
}

Eigen::MatrixXd AttentionOf(const MatrixList& m, int heads, int batch, bool causal) {
  const Eigen::Index width = m[0].rows() / heads;
  const Eigen::Index queries = m[0].cols() / batch;
  const Eigen::Index keys = m[1].cols() / batch;
  Eigen::MatrixXd y(m[0].rows(), m[0].cols());
  for (int s = 0; s < batch; ++s) {
    for (int i = 0; i < heads; ++i) {
      const Eigen::MatrixXd q = m[0].block(i * width, s * queries, width, queries);
      const Eigen::MatrixXd k = m[1].block(i * width, s * keys, width, keys);
      const Eigen::MatrixXd v = m[2].block(i * width, s * keys, width, keys);
      Eigen::MatrixXd p = (k.transpose() * q / std::sqrt(static_cast<double>(width))).array().exp();
      for (Eigen::Index t = 0; t < queries; ++t) {
        if (causal) p.col(t).tail(std::max<Eigen::Index>(keys - t - 1, 0)).setZero();
        p.col(t) /= p.col(t).sum();
      }
      y.block(i * width, s * queries, width, queries) = v * p;
    }
  }
  return y;
}

using Nodes = std::vector<Node>;
using Handles = std::vector<Parameter>;

OpCase OfOne(const std::string& name, Node (StaticGraph::*op)(Node), double (*f)(double),
             std::function<float(float)> domain = nullptr) {
  return {name,
          {{19, 3}},
          {},
          {},
          [op](StaticGraph& g, const Nodes& x, const Handles&) { return (g.*op)(x[0]); },
          [f](const MatrixList& m) { return Eigen::MatrixXd(m[0].unaryExpr(f)); },
          std::move(domain)};
}

OpCase OfTwo(const std::string& name, Shape a, Shape b, Node (StaticGraph::*op)(Node, Node),
             double (*f)(double, double)) {
  return {name,
          {a, b},
          {},
          {},
          [op](StaticGraph& g, const Nodes& x, const Handles&) { return (g.*op)(x[0], x[1]); },
          [f](const MatrixList& m) {
            const Eigen::Index rows = std::max(m[0].rows(), m[1].rows());
            const Eigen::Index columns = std::max(m[0].cols(), m[1].cols());
            Eigen::MatrixXd y(rows, columns);
            for (Eigen::Index i = 0; i < rows; ++i) {
              for (Eigen::Index j = 0; j < columns; ++j) {
                const auto at = [&](const Eigen::MatrixXd& x) {
                  return x(x.rows() == 1 ? 0 : i, x.cols() == 1 ? 0 : j);
                };
                y(i, j) = f(at(m[0]), at(m[1]));
              }
            }
            return y;
          },
          [](float v) { return v + std::copysign(0.3F, v); }};
}

std::vector<OpCase> OpCases() {
  const auto positive = [](float v) { return 0.2F + std::abs(v); };
  std::vector<OpCase> cases{
      OfOne("Relu", &StaticGraph::Relu, [](double x) { return std::max(x, 0.0); }),
      OfOne("Tanh", &StaticGraph::Tanh, [](double x) { return std::tanh(x); }),
      OfOne("Sigmoid", &StaticGraph::Sigmoid, &SigmoidOf),
      OfOne("Silu", &StaticGraph::Silu, [](double x) { return x * SigmoidOf(x); }),
      OfOne("Elu", &StaticGraph::Elu, [](double x) { return x > 0.0 ? x : std::expm1(x); }),
      OfOne(
          "Mish", &StaticGraph::Mish,
          [](double x) { return x * std::tanh(std::log1p(std::exp(x))); },
          [](float x) { return 4.0F * x; }),
      OfOne(
          "Softplus", &StaticGraph::Softplus, [](double x) { return std::log1p(std::exp(x)); },
          [](float x) { return 4.0F * x; }),
      OfOne("Exp", &StaticGraph::Exp, [](double x) { return std::exp(x); }),
      OfOne(
          "Log", &StaticGraph::Log, [](double x) { return std::log(x); }, positive),
      OfOne("Square", &StaticGraph::Square, [](double x) { return x * x; }),
      OfOne(
          "Sqrt", &StaticGraph::Sqrt, [](double x) { return std::sqrt(x); }, positive),
      OfOne("Abs", &StaticGraph::Abs, [](double x) { return std::abs(x); }),
      OfOne(
          "Symlog", &StaticGraph::Symlog,
          [](double x) { return std::copysign(std::log1p(std::abs(x)), x); },
          [](float x) { return 9.0F * x; }),
      OfOne("Symexp", &StaticGraph::Symexp,
            [](double x) { return std::copysign(std::expm1(std::abs(x)), x); }),
  };
  const auto add = [&cases](OpCase c) { cases.push_back(std::move(c)); };
  add({"Affine",
       {{5, 4}},
       {},
       {},
       [](StaticGraph& g, const Nodes& x, const Handles&) { return g.Affine(x[0], -1.5F, 0.25F); },
       [](const MatrixList& m) { return Eigen::MatrixXd(m[0].array() * -1.5 + 0.25); },
       nullptr});
  add({"Clamp",
       {{9, 4}},
       {},
       {},
       [](StaticGraph& g, const Nodes& x, const Handles&) { return g.Clamp(x[0], -0.5F, 0.75F); },
       [](const MatrixList& m) { return Eigen::MatrixXd(m[0].cwiseMax(-0.5).cwiseMin(0.75)); },
       nullptr});
  const std::vector<std::pair<std::string, std::pair<Shape, Shape>>> shapes{
      {"", {{11, 3}, {11, 3}}},           {"RepeatedColumn", {{11, 3}, {11, 1}}},
      {"RepeatedRow", {{11, 3}, {1, 3}}}, {"RepeatedFirst", {{1, 1}, {11, 3}}},
      {"Outer", {{11, 1}, {1, 3}}},
  };
  for (const auto& [end, pair] : shapes) {
    const auto [a, b] = pair;
    add(OfTwo("Add" + end, a, b, &StaticGraph::Add, [](double s, double t) { return s + t; }));
    add(OfTwo("Subtract" + end, a, b, &StaticGraph::Subtract,
              [](double s, double t) { return s - t; }));
    add(OfTwo("Multiply" + end, a, b, &StaticGraph::Multiply,
              [](double s, double t) { return s * t; }));
    add(OfTwo("Divide" + end, a, b, &StaticGraph::Divide,
              [](double s, double t) { return s / t; }));
    add(OfTwo("Min" + end, a, b, &StaticGraph::Min,
              [](double s, double t) { return std::min(s, t); }));
    add(OfTwo("Max" + end, a, b, &StaticGraph::Max,
              [](double s, double t) { return std::max(s, t); }));
  }
  for (const Shape x : {Shape{7, 5}, Shape{16, 12}, Shape{3, 1}}) {
    for (const int out : {1, 4, 18}) {
      add({StrCat("Linear", x.rows, "x", x.columns, "to", out),
           {x},
           {{out, x.rows}, {out, 1}},
           {},
           [](StaticGraph& g, const Nodes& n, const Handles& p) {
             return g.Linear(n[0], LinearParameters{p[0], p[1]});
           },
           [](const MatrixList& m) {
             return Eigen::MatrixXd((m[1] * m[0]).colwise() + m[2].col(0));
           },
           nullptr});
    }
  }
  for (const int parts : {1, 3}) {
    add({StrCat("BlockLinear", parts),
         {{12, 7}},
         {{parts * 20, 3}, {parts * 20, 1}},
         {},
         [parts](StaticGraph& g, const Nodes& n, const Handles& p) {
           return g.BlockLinear(n[0], g.Param(p[0]), g.Param(p[1]), 4, parts);
         },
         [parts](const MatrixList& m) {
           Eigen::MatrixXd full = Eigen::MatrixXd::Zero(m[1].rows(), 12);
           for (int i = 0; i < 4 * parts; ++i) {
             full.block(i * 5, i % 4 * 3, 5, 3) = m[1].middleRows(i * 5, 5);
           }
           return Eigen::MatrixXd((full * m[0]).colwise() + m[2].col(0));
         },
         nullptr});
  }
  // a weight whose columns are shared with a full product
  add({"BlockLinearOfPart",
       {{12, 7}},
       {{8, 18}},
       {},
       [](StaticGraph& g, const Nodes& n, const Handles& p) {
         const Node weight = g.Param(p[0]);
         return g.Add(g.Linear(n[0], g.SliceColumns(weight, 0, 12)),
                      g.BlockLinear(n[0], g.SliceColumns(weight, 12, 6), 2));
       },
       [](const MatrixList& m) {
         Eigen::MatrixXd full = m[1].leftCols(12);
         full.topLeftCorner(4, 6) += m[1].topRightCorner(4, 6);
         full.bottomRightCorner(4, 6) += m[1].bottomRightCorner(4, 6);
         return Eigen::MatrixXd(full * m[0]);
       },
       nullptr});
  add({"LinearOfNodes",
       {{7, 5}, {6, 7}, {6, 1}},
       {},
       {},
       [](StaticGraph& g, const Nodes& n, const Handles&) { return g.Linear(n[0], n[1], n[2]); },
       [](const MatrixList& m) { return Eigen::MatrixXd((m[1] * m[0]).colwise() + m[2].col(0)); },
       nullptr});
  add({"LinearWithoutBias",
       {{7, 5}},
       {{6, 7}},
       {},
       [](StaticGraph& g, const Nodes& n, const Handles& p) {
         return g.Linear(n[0], LinearParameters{p[0], {}});
       },
       [](const MatrixList& m) { return Eigen::MatrixXd(m[1] * m[0]); },
       nullptr});
  for (const bool centre : {true, false}) {
    const std::string name = centre ? "LayerNorm" : "RmsNorm";
    for (const int parameters : {0, 1, 2}) {
      OpCase c;
      c.name = StrCat(name, parameters);
      c.inputs = {{13, 4}};
      c.parameters.assign(parameters, {13, 1});
      c.build = [centre, parameters](StaticGraph& g, const Nodes& n, const Handles& p) {
        if (parameters == 0) return centre ? g.LayerNorm(n[0]) : g.RmsNorm(n[0]);
        NormParameters layer{.scale = p[0], .shift = {}};
        if (parameters == 2) layer.shift = p[1];
        return centre ? g.LayerNorm(n[0], layer) : g.RmsNorm(n[0], layer);
      };
      c.reference = [centre, parameters](const MatrixList& m) {
        Eigen::MatrixXd y = NormOf(m[0], centre);
        if (parameters > 0) y = m[1].col(0).asDiagonal() * y;
        if (parameters > 1) y.colwise() += m[2].col(0);
        return y;
      };
      add(c);
    }
  }
  add({"SliceRows",
       {{9, 4}},
       {},
       {},
       [](StaticGraph& g, const Nodes& n, const Handles&) {
         // a slice of a slice, and an overlapping one
         return g.Multiply(g.SliceRows(g.SliceRows(n[0], 2, 6), 1, 3), g.SliceRows(n[0], 4, 3));
       },
       [](const MatrixList& m) {
         return Eigen::MatrixXd(m[0].middleRows(3, 3).cwiseProduct(m[0].middleRows(4, 3)));
       },
       nullptr});
  add({"SliceColumns",
       {{9, 4}},
       {},
       {},
       [](StaticGraph& g, const Nodes& n, const Handles&) {
         return g.Multiply(g.SliceColumns(n[0], 1, 2), g.SliceColumns(n[0], 2, 2));
       },
       [](const MatrixList& m) {
         return Eigen::MatrixXd(m[0].middleCols(1, 2).cwiseProduct(m[0].middleCols(2, 2)));
       },
       nullptr});
  add({"ConcatRows",
       {{3, 4}, {5, 4}},
       {},
       {},
       [](StaticGraph& g, const Nodes& n, const Handles&) {
         return g.ConcatRows({n[0], n[1], n[0]});
       },
       [](const MatrixList& m) {
         Eigen::MatrixXd y(11, 4);
         y << m[0], m[1], m[0];
         return y;
       },
       nullptr});
  add({"ConcatColumns",
       {{3, 4}, {3, 1}},
       {},
       {},
       [](StaticGraph& g, const Nodes& n, const Handles&) {
         return g.ConcatColumns({n[0], n[1]});
       },
       [](const MatrixList& m) {
         Eigen::MatrixXd y(3, 5);
         y << m[0], m[1];
         return y;
       },
       nullptr});
  for (const Shape to : {Shape{6, 4}, Shape{24, 1}, Shape{2, 12}}) {
    add({StrCat("Reshape", to.rows),
         {{6, 4}},
         {},
         {},
         [to](StaticGraph& g, const Nodes& n, const Handles&) {
           return g.Reshape(n[0], to.rows, to.columns);
         },
         [to](const MatrixList& m) { return Eigen::MatrixXd(m[0].reshaped(to.rows, to.columns)); },
         nullptr});
  }
  add({"Embedding",
       {},
       {{5, 3}},
       {(Eigen::MatrixXf(1, 6) << 2, 0, 2, 1, 2, 0).finished()},
       [](StaticGraph& g, const Nodes& n, const Handles& p) {
         return g.GatherColumns(g.Param(p[0]), n[0]);
       },
       [](const MatrixList& m) {
         Eigen::MatrixXd y(5, 6);
         for (int j = 0; j < 6; ++j) y.col(j) = m[0].col(static_cast<int>(m[1](0, j)));
         return y;
       },
       nullptr});
  add({"Pick",
       {{5, 3}},
       {},
       {(Eigen::MatrixXf(2, 3) << 4, 0, 2, 4, 3, 1).finished()},
       [](StaticGraph& g, const Nodes& n, const Handles&) { return g.Pick(n[0], n[1]); },
       [](const MatrixList& m) {
         Eigen::MatrixXd y(2, 3);
         for (int i = 0; i < 2; ++i) {
           for (int j = 0; j < 3; ++j) y(i, j) = m[0](static_cast<int>(m[1](i, j)), j);
         }
         return y;
       },
       nullptr});
  for (const int group : {0, 4, 9}) {
    const int size = group == 0 ? 36 : group;
    add({StrCat("Softmax", group),
         {{36, 3}},
         {},
         {},
         [group](StaticGraph& g, const Nodes& n, const Handles&) { return g.Softmax(n[0], group); },
         [size](const MatrixList& m) { return SoftmaxRows(m[0], size); },
         nullptr});
    add({StrCat("LogSoftmax", group),
         {{36, 3}},
         {},
         {},
         [group](StaticGraph& g, const Nodes& n, const Handles&) {
           return g.LogSoftmax(n[0], group);
         },
         [size](const MatrixList& m) {
           return Eigen::MatrixXd(SoftmaxRows(m[0], size).array().log());
         },
         nullptr});
  }
  for (const int steps : {1, 4}) {
    for (const int width : {5, 16}) {
      add({StrCat("Gru", steps, "steps", width),
           {{3, 2 * steps}, {width, 2}},
           {{3 * width, 3}, {3 * width, 1}, {3 * width, width}, {3 * width, 1}},
           {},
           [](StaticGraph& g, const Nodes& n, const Handles& p) {
             return g.Gru(n[0], n[1], GruParameters{{p[0], p[1]}, {p[2], p[3]}});
           },
           [](const MatrixList& m) {
             return GruOf((m[2] * m[0]).colwise() + m[3].col(0), m[1], m[4], m[5]);
           },
           [](float v) { return 0.5F * v; }});
    }
  }
  struct Attention {
    int width, heads, batch, queries, keys;
    bool causal;
  };
  for (const Attention a : {Attention{6, 2, 2, 3, 3, false}, Attention{8, 1, 2, 5, 9, false},
                            Attention{10, 2, 1, 4, 4, true}, Attention{16, 2, 1, 17, 17, true}}) {
    add({StrCat("Attention", a.width, "of", a.keys, a.causal ? "Causal" : ""),
         {{a.width, a.batch * a.queries}, {a.width, a.batch * a.keys}, {a.width, a.batch * a.keys}},
         {},
         {},
         [a](StaticGraph& g, const Nodes& n, const Handles&) {
           return g.Attention(n[0], n[1], n[2],
                              {.heads = a.heads, .batch = a.batch, .causal = a.causal});
         },
         [a](const MatrixList& m) { return AttentionOf(m, a.heads, a.batch, a.causal); },
         nullptr});
  }
  add({"SelfAttention",
       {{6, 8}},
       {},
       {},
       [](StaticGraph& g, const Nodes& n, const Handles&) {
         return g.Attention(n[0], n[0], n[0], {.heads = 3, .batch = 2});
       },
       [](const MatrixList& m) {
         return AttentionOf({m[0], m[0], m[0]}, 3, 2, false);
       },
       nullptr});
  const auto reduction = [&add](const std::string& name, Node (StaticGraph::*op)(Node),
                                std::function<Eigen::MatrixXd(const Eigen::MatrixXd&)> f) {
    add({name,
         {{9, 4}},
         {},
         {},
         [op](StaticGraph& g, const Nodes& n, const Handles&) { return (g.*op)(n[0]); },
         [f = std::move(f)](const MatrixList& m) { return f(m[0]); },
         nullptr});
  };
  reduction("Sum", &StaticGraph::Sum,
            [](const auto& x) { return Eigen::MatrixXd::Constant(1, 1, x.sum()); });
  reduction("Mean", &StaticGraph::Mean,
            [](const auto& x) { return Eigen::MatrixXd::Constant(1, 1, x.mean()); });
  reduction("SumRows", &StaticGraph::SumRows,
            [](const auto& x) { return Eigen::MatrixXd(x.colwise().sum()); });
  reduction("MeanRows", &StaticGraph::MeanRows,
            [](const auto& x) { return Eigen::MatrixXd(x.colwise().mean()); });
  reduction("SumColumns", &StaticGraph::SumColumns,
            [](const auto& x) { return Eigen::MatrixXd(x.rowwise().sum()); });
  reduction("MeanColumns", &StaticGraph::MeanColumns,
            [](const auto& x) { return Eigen::MatrixXd(x.rowwise().mean()); });
  add({"MeanSquaredError",
       {{5, 3}, {5, 3}},
       {},
       {},
       [](StaticGraph& g, const Nodes& n, const Handles&) {
         return g.MeanSquaredError(n[0], n[1]);
       },
       [](const MatrixList& m) {
         return Eigen::MatrixXd::Constant(1, 1, (m[0] - m[1]).array().square().mean());
       },
       nullptr});
  add({"CrossEntropy",
       {{5, 3}, {5, 3}},
       {},
       {},
       [](StaticGraph& g, const Nodes& n, const Handles&) { return g.CrossEntropy(n[0], n[1]); },
       [](const MatrixList& m) {
         return Eigen::MatrixXd(
             -SoftmaxRows(m[0], 5).array().log().cwiseProduct(m[1].array()).colwise().sum());
       },
       nullptr});
  // two heads of 21 points, an even number of points, one target for both heads
  const TwoHotBins odd = TwoHotBins::Symlog(21, 2.0);
  const TwoHotBins even = TwoHotBins::Symexp(38, 2.0);
  const Eigen::MatrixXf targets =
      (Eigen::MatrixXf(2, 3) << 0.3F, -40.0F, 2.0F, -1.1F, 0.0F, 40.0F).finished();
  add({"TwoHotCrossEntropyOfEach",
       {{42, 3}},
       {},
       {targets},
       [odd](StaticGraph& g, const Nodes& n, const Handles&) {
         return g.TwoHotCrossEntropy(n[0], n[1], odd);
       },
       [odd](const MatrixList& m) { return TwoHotEntropyOf(m[0], m[1], odd); },
       nullptr});
  add({"TwoHotCrossEntropyOfOne",
       {{76, 3}},
       {},
       {targets.topRows(1)},
       [even](StaticGraph& g, const Nodes& n, const Handles&) {
         return g.TwoHotCrossEntropy(n[0], n[1], even);
       },
       [even](const MatrixList& m) { return TwoHotEntropyOf(m[0], m[1].replicate(2, 1), even); },
       nullptr});
  for (const TwoHotBins& bins : {odd, even, TwoHotBins::Even(15, 3.0)}) {
    add({StrCat("TwoHotMean", bins.count()),
         {{2 * bins.count(), 3}},
         {},
         {},
         [bins](StaticGraph& g, const Nodes& n, const Handles&) {
           return g.TwoHotMean(n[0], bins);
         },
         [bins](const MatrixList& m) {
           Eigen::MatrixXd y(2, 3);
           for (int i = 0; i < 2; ++i) {
             const Eigen::MatrixXd p =
                 SoftmaxRows(m[0].middleRows(i * bins.count(), bins.count()), bins.count());
             for (int j = 0; j < 3; ++j) y(i, j) = PointsOf(bins).dot(p.col(j));
           }
           const bool symlog = bins.count() == 21;
           return symlog ? Eigen::MatrixXd(y.unaryExpr(
                               [](double v) { return std::copysign(std::expm1(std::abs(v)), v); }))
                         : y;
         },
         nullptr});
  }
  return cases;
}

class StaticGraphOpTest : public ::testing::TestWithParam<OpCase> {};

// `inside`: the inputs are parts of larger ones, so that columns are apart and gradients add up.
void CheckOp(const OpCase& c, bool inside) {
  Rng rng(7, c.name);
  Parameters parameters;
  Handles handles;
  for (const Shape shape : c.parameters) {
    handles.push_back(parameters.Add(StrCat("p", handles.size()), shape.rows, shape.columns));
    handles.back().value() = 0.7F * RandomMatrix(shape.rows, shape.columns, rng);
  }
  StaticGraph graph;
  Nodes whole;
  Nodes nodes;
  for (const Shape shape : c.inputs) {
    if (inside) {
      whole.push_back(graph.InputWithGradient(shape.rows + 3, shape.columns + 2));
      nodes.push_back(
          graph.SliceColumns(graph.SliceRows(whole.back(), 1, shape.rows), 2, shape.columns));
    } else {
      whole.push_back(graph.InputWithGradient(shape.rows, shape.columns));
      nodes.push_back(whole.back());
    }
  }
  const std::size_t differentiable = nodes.size();
  for (const Eigen::MatrixXf& data : c.data) nodes.push_back(graph.Constant(data));
  const Node y = c.build(graph, nodes, handles);
  graph.Finish();

  MatrixList m;
  for (std::size_t i = 0; i < differentiable; ++i) {
    StridedMap x = graph.input(whole[i]);
    x.setConstant(1e9F);
    Eigen::MatrixXf values = RandomMatrix(nodes[i].rows, nodes[i].columns, rng);
    if (c.domain) values = values.unaryExpr(c.domain);
    x.block(inside ? 1 : 0, inside ? 2 : 0, nodes[i].rows, nodes[i].columns) = values;
    m.push_back(values.cast<double>());
  }
  for (const Parameter& p : handles) m.push_back(p.value().cast<double>());
  for (const Eigen::MatrixXf& data : c.data) m.push_back(data.cast<double>());

  graph.Forward();
  const Eigen::MatrixXd reference = c.reference(m);
  ASSERT_EQ(reference.rows(), y.rows);
  ASSERT_EQ(reference.cols(), y.columns);
  EXPECT_LT((graph.value(y).cast<double>() - reference).cwiseAbs().maxCoeff(),
            Tol(5e-6) * (1.0 + reference.cwiseAbs().maxCoeff()));

  const Eigen::MatrixXf d_y = RandomMatrix(y.rows, y.columns, rng);
  if (parameters.size() > 0) parameters.ClearGradients();
  graph.Backward({{y, d_y}});
  const auto loss = [&] { return c.reference(m).cwiseProduct(d_y.cast<double>()).sum(); };
  double largest = 0.0;
  for (std::size_t i = 0; i < differentiable + handles.size(); ++i) {
    const Eigen::MatrixXf d = i < differentiable
                                  ? Eigen::MatrixXf(graph.gradient(nodes[i]))
                                  : Eigen::MatrixXf(handles[i - differentiable].gradient());
    for (Eigen::Index k = 0; k < m[i].size(); ++k) {
      const double slope = Slope(m[i].data()[k], loss);
      ASSERT_NEAR(d.data()[k], slope, Tol(2e-5) * (1.0 + std::abs(slope)))
          << "operand " << i << ", element " << k;
      largest = std::max(largest, std::abs(slope));
    }
    if (inside && i < differentiable) {
      Eigen::MatrixXf beside = graph.gradient(whole[i]);
      beside.block(1, 2, nodes[i].rows, nodes[i].columns).setZero();
      EXPECT_EQ(beside.norm(), 0.0F);
    }
  }
  EXPECT_GT(largest, 1e-3);
}

TEST_P(StaticGraphOpTest, MatchesItsDefinition) { CheckOp(GetParam(), false); }
TEST_P(StaticGraphOpTest, MatchesItsDefinitionOnParts) { CheckOp(GetParam(), true); }

INSTANTIATE_TEST_SUITE_P(Ops, StaticGraphOpTest, ::testing::ValuesIn(OpCases()),
                         [](const auto& c) { return c.param.name; });

// Some members of an ensemble are those of all of them, in any order.
TEST(StaticGraphPerceptronTest, MembersAreThoseOfTheEnsemble) {
  const MlpSpec spec{.input = 5,
                     .hidden = {16},
                     .output = 3,
                     .activation = Activation::kMish,
                     .layer_norm = true,
                     .members = 4};
  Rng rng(1, "mlp");
  Parameters parameters({.target = true});
  parameters.Add("other", 3, 1);
  const MlpParameters network = AddMlp(parameters, "net", spec, rng);
  StaticGraph graph;
  const Node x = graph.InputWithGradient(5, 7);
  const Node members = graph.Input(2, 1);
  const Node all = graph.Mlp(x, network);
  const Node some = graph.MlpMembers(x, network, members);
  const Node frozen = graph.MlpMembers(x, network, members, ParameterUse::kFrozen);
  const Node target = graph.MlpMembers(x, network, members, ParameterUse::kTarget);
  graph.Finish();
  for (float& v : parameters.target()) v *= 0.5F;
  graph.FillNormal(x, rng);
  graph.input(members) << 3, 1;
  graph.Forward();
  EXPECT_EQ(graph.value(some).topRows(3), graph.value(all).bottomRows(3));
  EXPECT_EQ(graph.value(some).bottomRows(3), graph.value(all).middleRows(3, 3));
  EXPECT_EQ(graph.value(frozen), graph.value(some));
  EXPECT_NE(graph.value(target), graph.value(some));

  const Eigen::MatrixXf d = RandomMatrix(6, 7, rng);
  Eigen::MatrixXf d_all = Eigen::MatrixXf::Zero(12, 7);
  d_all.bottomRows(3) = d.topRows(3);
  d_all.middleRows(3, 3) = d.bottomRows(3);
  parameters.ClearGradients();
  graph.Backward({{all, d_all}});
  const Eigen::MatrixXf d_x = graph.gradient(x);
  const std::vector<float> expected(parameters.gradients().begin(), parameters.gradients().end());
  parameters.ClearGradients();
  graph.Backward({{frozen, d}});
  EXPECT_LT((graph.gradient(x) - d_x).cwiseAbs().maxCoeff(), Tol(1e-5));
  EXPECT_EQ(Norm(parameters.gradients()), 0.0);
  parameters.ClearGradients();
  graph.Backward({{some, d}});
  EXPECT_LT((graph.gradient(x) - d_x).cwiseAbs().maxCoeff(), Tol(1e-5));
  EXPECT_TRUE(std::ranges::equal(parameters.gradients(), expected));
  graph.Backward({{some, d}});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(parameters.gradients()[i], 2.0F * expected[i], Tol(1e-5)) << i;
  }
  graph.input(members) << 3, 4;
  EXPECT_THROW(graph.Forward(), InvariantError);
}

// The perceptron has its own test of gradients; here it must be the same network.
TEST(StaticGraphPerceptronTest, IsMlp) {
  for (const MlpSpec& spec : {MlpSpec{.input = 5, .hidden = {16, 16}, .output = 3},
                              MlpSpec{.input = 5,
                              .hidden = {20},
                              .output = 2,
                              .activation = Activation::kMish,
                              .output_activation = Activation::kTanh,
                              .layer_norm = true,
                              .members = 3}}) {
    for (const bool own : {false, true}) {
      Rng rng(1, "mlp");
      Mlp mlp(spec);
      mlp.Init(rng);
      Rng same(1, "mlp");
      Parameters parameters;
      parameters.Add("other", 3, 1);
      const MlpParameters network = AddMlp(parameters, "net", spec, same);
      EXPECT_EQ(parameters.tensors()[1].name, "net." + mlp.tensors()[0].name);
      EXPECT_EQ(parameters.tensors().size(), mlp.tensors().size() + 1);

      const int rows = spec.input * (own ? spec.members : 1);
      StaticGraph graph;
      const Node x = graph.InputWithGradient(rows, 6);
      const Node y = graph.Mlp(x, network);
      // the second use adds up
      const Node z = graph.Add(y, graph.Mlp(graph.Scale(x, 2.0F), network));
      graph.Finish();
      graph.input(x) = RandomMatrix(rows, 6, rng);
      graph.Forward();

      MlpTape tape(spec, 6);
      const Eigen::MatrixXf input = graph.value(x);
      const Eigen::MatrixXf output = mlp.Forward(input, tape);
      EXPECT_EQ(output, graph.value(y));
      const Eigen::MatrixXf d_output = RandomMatrix(y.rows, 6, rng);
      FloatBuffer gradients(mlp.parameter_count());
      Eigen::MatrixXf d_input(rows, 6);
      mlp.Backward(d_output, tape, gradients, 0, d_input);
      graph.Backward({{y, d_output}});
      EXPECT_EQ(d_input, graph.gradient(x));
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        ASSERT_EQ(parameters.gradients()[3 + i], gradients[i]) << i;
      }

      mlp.Forward(2.0F * input, tape);
      FloatBuffer more(mlp.parameter_count());
      Eigen::MatrixXf d_more(rows, 6);
      mlp.Backward(d_output, tape, more, 0, d_more);
      parameters.ClearGradients();
      graph.Backward({{z, d_output}});
      EXPECT_LT((d_input + 2.0F * d_more - graph.gradient(x)).cwiseAbs().maxCoeff(), Tol(1e-5));
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        const float sum = gradients[i] + more[i];
        ASSERT_NEAR(parameters.gradients()[3 + i], sum, Tol(1e-5) * (1.0F + std::abs(sum))) << i;
      }
    }
  }
}

}  // namespace
}  // namespace msrl
