"""The types that an estimator file may hold whoever wrote it, each by its exact name: they hold numbers and compute.

Not listed:

- what reads files (text vectorizers) or keeps a cache of pickles;
- what calls a method whose name is in the file (stacking, scorers, thresholds), and bound methods themselves;
- SciPy's distributions, whose ``__setstate__`` runs code;
- what hands indices of the file to compiled code that doesn't check them (nearest neighbours, support vectors, one-hot
  encoders and sparse matrices, the older gradient boosting). The arguments that the listed ones pass are checked: see
  ``trees`` and ``members``.
"""

from __future__ import annotations

from collections.abc import Mapping

ESTIMATORS: Mapping[str, tuple[str, ...]] = {
    "sklearn.calibration": (
        *("CalibratedClassifierCV", "_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling"),
    ),
    "sklearn.compose._column_transformer": ("ColumnTransformer",),
    "sklearn.compose._target": ("TransformedTargetRegressor",),
    "sklearn.cross_decomposition._pls": ("CCA", "PLSCanonical", "PLSRegression"),
    "sklearn.decomposition._factor_analysis": ("FactorAnalysis",),
    "sklearn.decomposition._fastica": ("FastICA",),
    "sklearn.decomposition._incremental_pca": ("IncrementalPCA",),
    "sklearn.decomposition._kernel_pca": ("KernelPCA",),
    "sklearn.decomposition._pca": ("PCA",),
    "sklearn.decomposition._truncated_svd": ("TruncatedSVD",),
    "sklearn.discriminant_analysis": ("LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"),
    "sklearn.dummy": ("DummyClassifier", "DummyRegressor"),
    "sklearn.ensemble._bagging": ("BaggingClassifier", "BaggingRegressor"),
    "sklearn.ensemble._forest": (
        *("ExtraTreesClassifier", "ExtraTreesRegressor", "RandomForestClassifier", "RandomForestRegressor"),
    ),
    "sklearn.ensemble._hist_gradient_boosting.binning": ("_BinMapper",),
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": (
        *("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
    ),
    "sklearn.ensemble._hist_gradient_boosting.predictor": ("TreePredictor",),
    "sklearn.ensemble._voting": ("VotingClassifier", "VotingRegressor"),
    "sklearn.ensemble._weight_boosting": ("AdaBoostClassifier", "AdaBoostRegressor"),
    "sklearn.feature_selection._rfe": ("RFE", "RFECV"),
    "sklearn.feature_selection._univariate_selection": (
        *("GenericUnivariateSelect", "SelectFdr", "SelectFpr", "SelectFwe", "SelectKBest", "SelectPercentile"),
    ),
    "sklearn.feature_selection._variance_threshold": ("VarianceThreshold",),
    "sklearn.gaussian_process._gpc": ("GaussianProcessClassifier", "_BinaryGaussianProcessClassifierLaplace"),
    "sklearn.gaussian_process._gpr": ("GaussianProcessRegressor",),
    "sklearn.gaussian_process.kernels": (
        *("CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern", "Product"),
        *("RBF", "RationalQuadratic", "Sum", "WhiteKernel"),
    ),
    "sklearn.impute._base": ("MissingIndicator", "SimpleImputer"),
    "sklearn.isotonic": ("IsotonicRegression",),
    "sklearn.kernel_approximation": ("Nystroem", "RBFSampler"),
    "sklearn.kernel_ridge": ("KernelRidge",),
    "sklearn.linear_model._base": ("LinearRegression",),
    "sklearn.linear_model._bayes": ("ARDRegression", "BayesianRidge"),
    "sklearn.linear_model._coordinate_descent": (
        *("ElasticNet", "ElasticNetCV", "Lasso", "LassoCV", "MultiTaskElasticNet", "MultiTaskLasso"),
    ),
    "sklearn.linear_model._glm.glm": ("GammaRegressor", "PoissonRegressor", "TweedieRegressor"),
    "sklearn.linear_model._huber": ("HuberRegressor",),
    "sklearn.linear_model._least_angle": ("Lars", "LarsCV", "LassoLars", "LassoLarsCV", "LassoLarsIC"),
    "sklearn.linear_model._logistic": ("LogisticRegression", "LogisticRegressionCV"),
    "sklearn.linear_model._omp": ("OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV"),
    "sklearn.linear_model._passive_aggressive": ("PassiveAggressiveClassifier", "PassiveAggressiveRegressor"),
    "sklearn.linear_model._perceptron": ("Perceptron",),
    "sklearn.linear_model._quantile": ("QuantileRegressor",),
    "sklearn.linear_model._ransac": ("RANSACRegressor",),
    "sklearn.linear_model._ridge": ("Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV"),
    "sklearn.linear_model._stochastic_gradient": ("SGDClassifier", "SGDRegressor"),
    "sklearn.linear_model._theil_sen": ("TheilSenRegressor",),
    "sklearn.metrics._scorer": ("_PassthroughScorer",),
    "sklearn.model_selection._search": ("GridSearchCV", "RandomizedSearchCV"),
    "sklearn.model_selection._split": (
        *("KFold", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit", "StratifiedKFold"),
        *("StratifiedShuffleSplit", "TimeSeriesSplit"),
    ),
    "sklearn.multiclass": ("OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier", "_ConstantPredictor"),
    "sklearn.naive_bayes": ("BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"),
    "sklearn.neighbors._nearest_centroid": ("NearestCentroid",),
    "sklearn.neural_network._multilayer_perceptron": ("MLPClassifier", "MLPRegressor"),
    "sklearn.neural_network._stochastic_optimizers": ("AdamOptimizer", "SGDOptimizer"),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing._data": (
        *("Binarizer", "KernelCenterer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "PowerTransformer"),
        *("QuantileTransformer", "RobustScaler", "StandardScaler"),
    ),
    "sklearn.preprocessing._encoders": ("OrdinalEncoder",),
    "sklearn.preprocessing._function_transformer": ("FunctionTransformer",),
    "sklearn.preprocessing._label": ("LabelBinarizer", "LabelEncoder"),
    "sklearn.preprocessing._polynomial": ("PolynomialFeatures",),
    "sklearn.preprocessing._target_encoder": ("TargetEncoder",),
    "sklearn.svm._classes": ("LinearSVC", "LinearSVR"),
    "sklearn.tree._classes": (
        *("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"),
    ),
    "sklearn._loss.link": ("HalfLogitLink", "IdentityLink", "Interval", "LogLink", "LogitLink", "MultinomialLogit"),
    "sklearn._loss.loss": (
        *("AbsoluteError", "ExponentialLoss", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss"),
        *("HalfPoissonLoss", "HalfSquaredError", "HalfTweedieLoss", "HalfTweedieLossIdentity", "HuberLoss"),
        "PinballLoss",
    ),
}
LOSSES: Mapping[str, tuple[str, ...]] = {
    "sklearn._loss._loss": (
        *("CyAbsoluteError", "CyExponentialLoss", "CyHalfBinomialLoss", "CyHalfGammaLoss", "CyHalfMultinomialLoss"),
        *("CyHalfPoissonLoss", "CyHalfSquaredError", "CyHalfTweedieLoss", "CyHalfTweedieLossIdentity"),
        *("CyHuberLoss", "CyPinballLoss"),
    ),
    "sklearn.linear_model._sgd_fast": (
        *("EpsilonInsensitive", "Hinge", "ModifiedHuber", "SquaredEpsilonInsensitive", "SquaredHinge"),
    ),
}
FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "numpy": (
        *("absolute", "arcsinh", "cbrt", "cos", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "mean"),
        *("median", "negative", "reciprocal", "sin", "sqrt", "square", "tan", "tanh"),
    ),
    "sklearn.feature_selection._mutual_info": ("mutual_info_classif", "mutual_info_regression"),
    "sklearn.feature_selection._univariate_selection": ("chi2", "f_classif", "f_regression", "r_regression"),
    "sklearn.utils.validation": ("check_array",),
}
NUMBERS: Mapping[str, tuple[str, ...]] = {
    "numpy": (
        *("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "str_"),
        *("uint8", "uint16", "uint32", "uint64"),
    ),
}
PRIMITIVES: Mapping[str, tuple[str, ...]] = {"builtins": ("bool", "float", "int", "str")}


def pairs(*tables: Mapping[str, tuple[str, ...]]) -> frozenset[tuple[str, str]]:
    """Return the (module, name) of everything in ``tables``."""
    return frozenset((module, name) for table in tables for module, names in table.items() for name in names)


TYPES: Mapping[str, frozenset[tuple[str, str]]] = {
    "DictNode": frozenset({("builtins", "dict"), ("sklearn.utils._bunch", "Bunch")}),
    "DTypeNode": frozenset({("numpy", "dtype")}),
    "FunctionNode": pairs(FUNCTIONS),
    "JsonNode": frozenset({("builtins", "str")}),
    "ListNode": frozenset({("builtins", "list")}),
    "LossNode": pairs(LOSSES),
    "MaskedArrayNode": frozenset({("numpy.ma", "MaskedArray")}),
    "NdArrayNode": pairs(NUMBERS) | {("numpy", "ndarray")},
    "ObjectNode": pairs(ESTIMATORS),
    "PartialNode": frozenset({("functools", "partial")}),
    "RandomGeneratorNode": frozenset({("numpy.random._generator", "Generator")}),
    "RandomStateNode": frozenset({("numpy.random.mtrand", "RandomState")}),
    "SetNode": frozenset({("builtins", "set")}),
    "SliceNode": frozenset({("builtins", "slice")}),
    "TreeNode": frozenset({("sklearn.tree._tree", "Tree")}),
    "TupleNode": frozenset({("builtins", "tuple")}),
    "TypeNode": pairs(NUMBERS, PRIMITIVES),
}
"""What each kind of entry in skops's schema may name. Kinds that are not here call methods, or anything."""
