"""Plain twins of the compression models: dense numpy, every matrix formed."""

import numpy as np


def centred(A):
    return A - A.mean(axis=0)


def ridge(X, T, penalty):
    """One target at a time, by the normal equations of the centred rows."""
    Xc = centred(X)
    penalty = np.broadcast_to(penalty, T.shape[1])
    eye = np.eye(X.shape[1])
    return np.column_stack([np.linalg.solve(Xc.T @ Xc + p * eye, Xc.T @ t) for p, t in zip(penalty, T.T, strict=True)])


def cplst_scores(X, Y, X_new, dim, l2):
    """Scores by the eigenvectors of the whole Yᵀ H Y."""
    Xc, Yc = centred(X), centred(Y)
    hat = Xc @ np.linalg.solve(Xc.T @ Xc + l2 * np.eye(X.shape[1]), Xc.T)
    V = np.linalg.eigh(Yc.T @ hat @ Yc)[1][:, -dim:]
    return (X_new - X.mean(axis=0)) @ ridge(X, Yc @ V, l2) @ V.T + Y.mean(axis=0)


def mlcssp_scores(X, Y, X_new, chosen, l2):
    """Regression to the chosen columns with an intercept, decoded by the pseudo-inverse."""
    C = Y[:, chosen]
    z = (X_new - X.mean(axis=0)) @ ridge(X, C, l2) + C.mean(axis=0)
    return z @ np.linalg.pinv(C) @ Y


def leml_objective(X, Y, W, H, l2):
    """½ |Yc - Xc W Hᵀ|² + ½ l2 (|W|² + |H|²)"""
    return 0.5 * ((centred(Y) - centred(X) @ W @ H.T) ** 2).sum() + 0.5 * l2 * ((W**2).sum() + (H**2).sum())


def pursue(targets, block, vectors, positions, weights):
    """Orthogonal matching pursuit, the weights by least squares over and over."""
    for i in range(*block):
        positions[i], weights[i] = -1, -np.inf
        target, chosen = targets[i].astype(np.float64), []
        for _ in range(positions.shape[1]):
            fitted = np.linalg.lstsq(vectors[chosen].T.astype(np.float64), target)[0] if chosen else np.empty(0)
            residual = target - fitted @ vectors[chosen]
            products = vectors @ residual
            best = int(np.argmax(products))
            spans = [*chosen, best]
            if np.linalg.norm(residual) < 1e-5 * np.linalg.norm(target) or products[best] <= 0 or best in chosen:
                break
            if np.linalg.matrix_rank(vectors[spans].astype(np.float64), tol=1e-5) < len(spans):
                break
            chosen = spans
        if chosen:
            positions[i, : len(chosen)] = chosen
            weights[i, : len(chosen)] = np.linalg.lstsq(vectors[chosen].T.astype(np.float64), target)[0]


def project_singular_values(G, pairs, dim, rounds):
    """Singular value projection with the whole M: ``pairs`` weighs each entry of the sum of squares."""
    M = np.zeros_like(G)
    for _ in range(rounds):
        values, vectors = np.linalg.eigh(M + pairs * (G - M))
        values, vectors = np.maximum(values[-dim:], 0), vectors[:, -dim:]
        M = (vectors * values) @ vectors.T
    return M


def robust_objective(X, Y, W, H, S, l1, l2):
    """½ |Yc - Xc W Hᵀ - Xc S|² + ½ l2 (|W|² + |H|²) + l1 |S|₁"""
    residual = centred(Y) - centred(X) @ (W @ H.T + S)
    return 0.5 * (residual**2).sum() + 0.5 * l2 * ((W**2).sum() + (H**2).sum()) + l1 * np.abs(S).sum()
